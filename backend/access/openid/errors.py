"""Why somebody is not signed in through the provider."""

from collections.abc import Iterator
from contextlib import contextmanager

from connectors.errors import InvalidInputError, NotConfiguredError
from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.http_client.response import CertificateError, NotAuthorizedError, ResponseError


class SignInRefusedError(InvalidInputError):
    """What the browser or the provider sent does not prove who somebody is."""


@contextmanager
def translated_errors(subject: str) -> Iterator[None]:
    """Say of a request that failed what it was about; the client's own errors speak of sources.

    Raises:
        NotConfiguredError: the settings of the provider cannot be right.
        SignInRefusedError: the response of the provider cannot be used.
    """
    try:
        yield
    except AddressNotAllowedError as error:
        raise NotConfiguredError(
            f"{subject} is at an address that Quarry does not connect to: in the private network, only the host of"
            " QUARRY_OIDC_ISSUER is."
        ) from error
    except CertificateError as error:
        raise NotConfiguredError(
            f"The TLS certificate for {subject} is not valid. If a private authority signed it, name the file of the"
            " authority in QUARRY_OIDC_CA."
        ) from error
    except NotAuthorizedError as error:
        raise SignInRefusedError(
            f"The provider does not give Quarry access to {subject}."
        ) from error
    except ResponseError as error:
        raise SignInRefusedError(f"{subject} cannot be read: {error}.") from error
