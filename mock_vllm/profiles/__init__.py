"""The releases the mock can imitate."""

from __future__ import annotations

from mock_vllm.errors import SettingsError
from mock_vllm.profiles.profile import Profile
from mock_vllm.profiles.v0_21_0 import PROFILE as V0_21_0
from mock_vllm.profiles.v0_32_0 import PROFILE as V0_32_0

RELEASES: dict[str, Profile] = {profile.version: profile for profile in (V0_21_0, V0_32_0)}
DEFAULT_RELEASE = "0.21.0"


def find_profile(version: str) -> Profile:
    """Return the profile of a release.

    Raises:
        SettingsError: the release has no profile; the message lists those that have.
    """
    try:
        return RELEASES[version]
    except KeyError:
        known = ", ".join(RELEASES)
        raise SettingsError("--vllm-version", f"no profile of vLLM {version}; there is one of: {known}") from None


__all__ = ["DEFAULT_RELEASE", "RELEASES", "Profile", "find_profile"]
