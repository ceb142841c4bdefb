// Command lockstep-manager runs the engine inside or outside a cluster.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"lockstep.run/lockstep/internal/manager"
)

func main() {
	config, err := manager.Parse(os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "lockstep-manager:", err)
		os.Exit(2)
	case config.Version:
		fmt.Println(manager.Version())
		return
	}

	if err := manager.Run(ctrl.SetupSignalHandler(), config); err != nil {
		fmt.Fprintln(os.Stderr, "lockstep-manager:", err)
		os.Exit(1)
	}
}
