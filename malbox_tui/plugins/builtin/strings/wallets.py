"""Addresses of wallets, told from other words by their checksums.

Sources: Bitcoin's base58check; BIP 173 and BIP 350 (bech32, bech32m); EIP-55; Monero's address format (cryptonote base58).
"""

import hashlib
import re
from collections.abc import Iterator

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE58_VALUES = {sign: value for value, sign in enumerate(_BASE58)}
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_VALUES = {sign: value for value, sign in enumerate(_BECH32)}
_BECH32_CONSTANTS = (1, 0x2BC830A3)

_VERSIONS = {
    0x00: "bitcoin",
    0x05: "bitcoin",
    0x1E: "dogecoin",
    0x30: "litecoin",
    0x32: "litecoin",
    0x41: "tron",
    0x4C: "dash",
}
"""The first byte of a decoded base58check address → its coin."""

_WORD = r"(?<![A-Za-z0-9])(?:{})(?![A-Za-z0-9])"
_ANY = re.compile(
    _WORD.format(
        "|".join(
            (
                rf"(?P<base58>[13DLMTX][{_BASE58}]{{25,34}})",
                rf"(?P<bech32>(?:bc|ltc)1[{_BECH32}]{{11,71}})",
                r"(?P<ethereum>0x[0-9a-fA-F]{40})",
                rf"(?P<monero>[48][{_BASE58}]{{94}})",
            )
        )
    )
)


def wallets_in(text: str) -> Iterator[tuple[str, str]]:
    """The coin and the address of each wallet."""
    for match in _ANY.finditer(text):
        coin = _CHECKS[match.lastgroup or ""](match[0])
        if coin is not None:
            yield coin, match[0]


def _base58(word: str) -> str | None:
    value = 0
    for sign in word:
        value = value * 58 + _BASE58_VALUES[sign]
    try:
        content = value.to_bytes(25, "big")
    except OverflowError:
        return None
    digest = hashlib.sha256(hashlib.sha256(content[:21]).digest()).digest()
    return _VERSIONS.get(content[0]) if digest[:4] == content[21:] else None


def _bech32(word: str) -> str | None:
    prefix, _, rest = word.rpartition("1")
    values = [ord(sign) >> 5 for sign in prefix] + [0] + [ord(sign) & 31 for sign in prefix]
    values += [_BECH32_VALUES[sign] for sign in rest]
    checksum = 1
    for value in values:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value
        for place, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            checksum ^= generator if top >> place & 1 else 0
    if checksum not in _BECH32_CONSTANTS:
        return None
    return {"bc": "bitcoin", "ltc": "litecoin"}[prefix]


def _ethereum(word: str) -> str | None:
    """Only one whose case is its checksum: forty digits in one case may be anything."""
    digits = word[2:]
    digest = keccak256(digits.lower().encode()).hex()
    right = "".join(sign.upper() if int(nibble, 16) >= 8 else sign for sign, nibble in zip(digits.lower(), digest, strict=False))
    return "ethereum" if right == digits and digits.lower() != digits else None


def _monero(word: str) -> str | None:
    content = b""
    for start in range(0, len(word), 11):
        block = word[start : start + 11]
        value = 0
        for sign in block:
            value = value * 58 + _BASE58_VALUES[sign]
        try:
            content += value.to_bytes(8 if len(block) == 11 else 5, "big")
        except OverflowError:
            return None
    return "monero" if keccak256(content[:-4])[:4] == content[-4:] else None


_CHECKS = {"base58": _base58, "bech32": _bech32, "ethereum": _ethereum, "monero": _monero}

_ROUND_CONSTANTS = (
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800A, 0x800000008000000A, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
)  # fmt: skip
_MASK = (1 << 64) - 1
_RATE_BYTES = 136


def keccak256(content: bytes) -> bytes:
    """Keccak with its first padding, which SHA-3 in `hashlib` has another one for (https://keccak.team/keccak_specs_summary.html)."""
    padded = bytearray(content + b"\x01" + bytes(-(len(content) + 1) % _RATE_BYTES))
    padded[-1] |= 0x80
    state = [0] * 25
    for start in range(0, len(padded), _RATE_BYTES):
        for lane in range(_RATE_BYTES // 8):
            state[lane] ^= int.from_bytes(padded[start + 8 * lane : start + 8 * lane + 8], "little")
        _permute(state)
    return b"".join(lane.to_bytes(8, "little") for lane in state[:4])


def _permute(state: list[int]) -> None:
    for constant in _ROUND_CONSTANTS:
        columns = [state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^ state[x + 20] for x in range(5)]
        mixed = [columns[x - 1] ^ _rotated(columns[(x + 1) % 5], 1) for x in range(5)]
        for place in range(25):
            state[place] ^= mixed[place % 5]
        x, y, lane = 1, 0, state[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            lane, state[x + 5 * y] = state[x + 5 * y], _rotated(lane, (step + 1) * (step + 2) // 2 % 64)
        for row in range(0, 25, 5):
            lanes = state[row : row + 5]
            for x in range(5):
                state[row + x] = lanes[x] ^ (~lanes[(x + 1) % 5] & lanes[(x + 2) % 5] & _MASK)
        state[0] ^= constant


def _rotated(lane: int, by: int) -> int:
    return (lane << by | lane >> (64 - by)) & _MASK if by else lane
