// Command lockstep-manager runs the engine in or beside a cluster. With the first argument rehearse it shows what it would do there,
// as kubectl package rehearse does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // where there are none on disk, as in the image
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/manager"
	"lockstep.run/lockstep/internal/version"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "rehearse" {
		os.Exit(rehearse(ctrl.SetupSignalHandler(), os.Args[2:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	config, err := manager.Parse(os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "lockstep-manager:", err)
		os.Exit(2)
	case config.Version:
		fmt.Println(version.Get())
		return
	}
	if err := manager.Run(ctrl.SetupSignalHandler(), config); err != nil {
		fmt.Fprintln(os.Stderr, "lockstep-manager:", err)
		os.Exit(1)
	}
}

// rehearse runs kubectl package rehearse, of which the image has no other program.
func rehearse(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	return planning.RunRehearse(ctx, args, command.Command{Streams: streams, Dial: cluster.Connect})
}
