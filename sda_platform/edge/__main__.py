"""The collector as a process of the platform: ``python -m sda_platform.edge <configuration>``; settings as always."""

import sys
from pathlib import Path

from sda_platform.edge.config import ConfigError
from sda_platform.edge.service import run_collector
from sda_platform.landing.first_lines import MappingError
from sda_platform.settings import Settings

if __name__ == "__main__":
    settings = Settings()
    try:
        sys.exit(
            run_collector(
                Path(sys.argv[1]),
                landing_root=settings.landing_uri,
                home=settings.home.absolute(),
                fleet=settings.screening,
            )
        )
    except (ConfigError, MappingError) as error:
        sys.exit(str(error))
