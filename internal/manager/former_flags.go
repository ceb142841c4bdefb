package manager

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// renamed maps Package Operator's names of flags to ours.
var renamed = map[string]string{
	"metrics-addr":           "metrics-bind-address",
	"pprof-addr":             "pprof-bind-address",
	"enable-leader-election": "leader-elect",

	"target-cluster-kubeconfig-file": "target-kubeconfig", // of its agent
}

// formerFlags accepts the flags of Package Operator, so that its Deployment only needs another
// image. check refuses those whose meaning would differ.
func formerFlags(flags *pflag.FlagSet) (check func(*Config) error) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if now, ok := renamed[name]; ok {
			name = now
		}
		return pflag.NormalizedName(name)
	})

	var serviceAccountNamespace, selfBootstrap, unused string
	for name, value := range map[string]*string{
		"service-account-namespace": &serviceAccountNamespace, "self-bootstrap": &selfBootstrap,
		// These are ignored.
		"package-operator-package-image": &unused, "self-bootstrap-config": &unused,
		"object-template-resource-retry-interval": &unused, "object-template-optional-resource-retry-interval": &unused,
		"sub-component-affinity": &unused, "sub-component-tolerations": &unused,
	} {
		flags.StringVar(value, name, "", "a flag of Package Operator")
		flags.Lookup(name).Hidden = true
	}

	return func(c *Config) error {
		if selfBootstrap != "" {
			return fmt.Errorf("--self-bootstrap is not supported: this manager is installed by kubectl apply --server-side -k config")
		}
		if ns := serviceAccountNamespace; ns != "" && ns != c.Namespace {
			return fmt.Errorf("--service-account-namespace %q: the manager's service account is in --namespace, which is %q", ns, c.Namespace)
		}
		return nil
	}
}

// doubleDashes accepts long flags with one dash, as Go's package flag does.
func doubleDashes(args []string) []string {
	long := make([]string, len(args))
	for i, arg := range args {
		if name, single := strings.CutPrefix(arg, "-"); single && len(name) > 1 && !strings.HasPrefix(name, "-") {
			arg = "--" + name
		}
		long[i] = arg
	}
	return long
}

// number parses a 32-bit number; an empty text is 0.
func number(text string) (int32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a 32-bit number", text)
	}
	return int32(n), nil
}
