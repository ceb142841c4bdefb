package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operator is the field manager that makes gates ready.
const operator = "operator"

// kubectlCommands run kubectl in the script's namespace.
var kubectlCommands = commands{
	// kubectl ARGUMENTS: as the administrator. --FLAG=@FILE names a file of the
	// script. With "!" before it, the command has to be refused; stderr has the message.
	"kubectl": func(s *scenario, neg bool, args []string) { s.kubectl(neg, args) },
	// ready NAME…: simulates an operator for ConfigMaps with the label gated=true. It copies
	// data.value to data.ready, as a controller reports its observed generation. It waits
	// until the ConfigMap has the value of the desired version.
	"ready": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) >= 1, "ready NAME…")
		for _, name := range args {
			s.ready(name)
		}
	},
}

func (s *scenario) kubectl(neg bool, args []string) {
	for i, arg := range args {
		if flag, file, ok := strings.Cut(arg, "=@"); ok {
			args[i] = flag + "=" + s.ts.MkAbs(file)
		}
	}
	out, err := s.cluster().Kubectl(s.Context(), append([]string{"--namespace=" + s.namespace}, args...)...)
	s.print(out)
	s.outcome(neg, err)
}

// outcome ends the script if a command succeeded or failed unexpectedly.
func (s *scenario) outcome(neg bool, err error) {
	switch {
	case err == nil && neg:
		s.Fatal("succeeded, which it must not")
	case err != nil && !neg:
		s.Fatal(err)
	case err != nil:
		_, _ = s.ts.Stderr().Write([]byte(err.Error() + "\n"))
	}
}

func (s *scenario) ready(name string) {
	s.eventually(patience, name+" to be made ready", func(ctx context.Context) error {
		obj := s.object("configmap/" + name)
		if err := s.get(ctx, obj); err != nil {
			return err
		}
		value, _, err := unstructured.NestedString(obj.Object, "data", "value")
		if want := s.wanted(name); err != nil || value != want {
			return errors.Join(err, fmt.Errorf("its value is %q, not yet %q", value, want))
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"data":{"ready":%q}}`, obj.GetUID(), value)
		return s.env.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(operator))
	})
}

// wanted returns the value of a gate in the desired versions.
func (s *scenario) wanted(gate string) string {
	for name, version := range s.desired() {
		for _, o := range s.contents(name, version) {
			if o.gated && o.template.GetName() == gate {
				value, _, _ := unstructured.NestedString(o.template.Object, "data", "value")
				return value
			}
		}
	}
	s.Fatalf("no package contains the gate %s", gate)
	return ""
}
