"""``python -m git_fabro`` is the program itself."""

from __future__ import annotations

from git_fabro.cli.start import main

raise SystemExit(main())
