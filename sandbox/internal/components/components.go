package components

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // JSON log format, as upstream's main functions do
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, likewise
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric, likewise
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Names of the programs, which are also the names of the symlinks beside the
// binary.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	Registry          = "registry"
)

// Names lists every program, sorted.
func Names() []string {
	names := []string{Etcd, APIServer, ControllerManager, Scheduler, Kubectl, Kwok, Registry}
	slices.Sort(names)
	return names
}

// Run takes the process over as the program called name, one of [Names], with
// the arguments in os.Args. It does not return.
//
// Kubernetes registers flags such as --version on the global flag set when it is
// linked in. The programs that read that set get an empty one, or they would
// meet flags of another type than their own.
func Run(name string) {
	WatchParent()
	switch name {
	case Etcd:
		etcdmain.Main(os.Args)
		os.Exit(0)
	case APIServer:
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case ControllerManager:
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case Scheduler:
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case Kubectl:
		os.Exit(runKubectl())
	case Kwok:
		pflag.CommandLine = pflag.NewFlagSet(name, pflag.ContinueOnError)
		os.Exit(runKwok())
	case Registry:
		os.Exit(runRegistry(os.Args[1:]))
	}
	fmt.Fprintf(os.Stderr, "unknown component %q: choose one of %s\n", name, strings.Join(Names(), ", "))
	os.Exit(2)
}
