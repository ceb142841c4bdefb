package components

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // JSON log format, as in upstream's main functions
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, likewise
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric, likewise
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"lockstep.run/lockstep/sandbox/internal/program"
	"lockstep.run/lockstep/sandbox/internal/registry"
)

// Run turns the process into the program called name, one of [program.Names], with the arguments in
// os.Args. It does not return.
//
// Kubernetes registers flags such as --version on the global flag set when it is linked in. The
// programs that read that set get an empty one, because they would otherwise find flags of another
// type than their own.
func Run(name string) {
	WatchParent()
	switch name {
	case program.Etcd:
		etcdmain.Main(os.Args)
		os.Exit(0)
	case program.APIServer:
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case program.ControllerManager:
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case program.Scheduler:
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case program.Kubectl:
		os.Exit(runKubectl())
	case program.Kwok:
		pflag.CommandLine = pflag.NewFlagSet(name, pflag.ContinueOnError)
		os.Exit(runKwok())
	case program.Registry:
		os.Exit(registry.Run(os.Args[1:]))
	}

	fmt.Fprintf(os.Stderr, "unknown component %q: choose one of %s\n", name, strings.Join(program.Names(), ", "))
	os.Exit(2)
}
