UPDATE engine SET epoch = epoch + 1 RETURNING id, epoch
