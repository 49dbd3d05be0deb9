"""The two libraries that are asked, each reduced to an opinion. Their text is cut: it may quote the sample."""

import os
from dataclasses import dataclass
from pathlib import Path

# onnxruntime has telemetry, which begins when it is imported; pylibmagic makes `magic` find its own libmagic and rules, not the
# system's. So the order counts.
# isort: off
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime
from magika import Magika
import pylibmagic  # noqa: F401
import magic
# isort: on

MAX_TEXT = 300


@dataclass(frozen=True)
class MagikaOpinion:
    """What the model says; `score` is 0 to 1."""

    label: str
    score: float
    mime: str
    description: str


@dataclass(frozen=True)
class LibmagicOpinion:
    """What the rules say."""

    mime: str
    description: str


class MagikaReader:
    """The loaded model."""

    def __init__(self) -> None:
        self._model = _SmallMagika()

    def read(self, path: Path) -> MagikaOpinion:
        """Raises RuntimeError when the model refuses the file."""
        result = self._model.identify_path(path)
        if not result.ok:
            raise RuntimeError(f"Magika can't read the sample: {result.status}")
        output = result.prediction.output
        return MagikaOpinion(
            label=str(output.label),
            score=float(result.prediction.score),
            mime=output.mime_type,
            description=output.description[:MAX_TEXT],
        )


class LibmagicReader:
    """The loaded rules."""

    def __init__(self) -> None:
        self._mime = magic.Magic(mime=True)
        self._description = magic.Magic()

    def read(self, path: Path) -> LibmagicOpinion:
        """Raises `magic.MagicException` when libmagic fails."""
        return LibmagicOpinion(
            mime=self._mime.from_file(str(path))[:MAX_TEXT],
            description=self._description.from_file(str(path))[:MAX_TEXT],
        )


class _SmallMagika(Magika):
    """Magika in one thread and without a memory arena, for which it has no options."""

    def _init_onnx_session(self) -> onnxruntime.InferenceSession:
        onnxruntime.set_default_logger_severity(3)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
        return onnxruntime.InferenceSession(self._model_path, sess_options=options, providers=["CPUExecutionProvider"])
