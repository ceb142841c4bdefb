package components

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins, as in kubectl's own main
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// runKubectl returns the exit code of kubectl with the arguments in os.Args.
func runKubectl() int {
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints the error and exits with its code
		return 1
	}
	return 0
}
