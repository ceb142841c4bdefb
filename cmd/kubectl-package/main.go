// Command kubectl-package builds, checks, installs and watches packages. In PATH
// it is also a plugin: kubectl package.
package main

import (
	"os"

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/ui"
)

func main() { os.Exit(cli.Main(ui.Commands)) }
