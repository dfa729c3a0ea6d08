"""What is closed when its block is left."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Give back what is held. Safe to repeat."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
