// Command kubectl-package builds, checks, installs and watches packages. In PATH
// it is also a plugin: kubectl package.
package main

import (
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // where there are none on disk, as in many images of CI

	"lockstep.run/lockstep/internal/cli"
	"lockstep.run/lockstep/internal/ui"
)

func main() { os.Exit(cli.Main(ui.Commands)) }
