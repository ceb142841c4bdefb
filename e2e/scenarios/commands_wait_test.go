package scenarios_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
)

// patience is the default limit for waiting, which is enough for a change on a slow machine.
var patience = harness.Patience

// waitCommands wait for a state. The limit is --within=DURATION, or harness.Patience. (The word
// "wait" is one of testscript's own commands.)
var waitCommands = commands{
	// await available NAME: the package's current spec is rolled out.
	// await condition NAME TYPE=STATUS: the package has the condition for its current
	// generation; prints the message.
	// await exists KIND/NAME, await gone KIND/NAME: of the script's namespace.
	// await writes N: the manager wrote N objects of packages since the mark.
	"await": func(s *scenario, _ bool, args []string) {
		limit, args := s.within(args)
		s.usage(len(args) >= 2, "await WHAT …")
		wait := waits[args[0]]
		s.usage(wait != nil, "await available|condition|exists|gone|writes …")
		wait(s, limit, args[1:])
	},
}

var waits = map[string]func(s *scenario, limit time.Duration, args []string){
	"available": func(s *scenario, limit time.Duration, args []string) {
		s.eventually(limit, args[0]+" to be available", func(ctx context.Context) error { return s.available(ctx, args[0]) })
	},
	"condition": func(s *scenario, limit time.Duration, args []string) {
		s.usage(len(args) == 2, "await condition NAME TYPE=STATUS")
		typ, status, _ := strings.Cut(args[1], "=")
		s.eventually(limit, strings.Join(args, " to be "), func(ctx context.Context) error {
			pkg, err := s.readPackage(ctx, args[0])
			if err != nil {
				return err
			}
			c := meta.FindStatusCondition(*pkg.StatusConditions(), typ)
			if c == nil || string(c.Status) != status || c.ObservedGeneration != pkg.GetGeneration() {
				return fmt.Errorf("generation %d, status %+v", pkg.GetGeneration(), *pkg.PackageStatus())
			}
			s.print(c.Message + "\n")
			return nil
		})
	},
	"exists": func(s *scenario, limit time.Duration, args []string) {
		s.eventually(limit, args[0]+" to exist", func(ctx context.Context) error { return s.get(ctx, s.object(args[0])) })
	},
	"gone": func(s *scenario, limit time.Duration, args []string) {
		s.eventually(limit, args[0]+" to be gone", func(ctx context.Context) error {
			obj := s.object(args[0])
			err := s.get(ctx, obj)
			if err == nil {
				return fmt.Errorf("it is there, finalizers %v, conditions %v", obj.GetFinalizers(), conditionsOf(obj))
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	},
	"writes": func(s *scenario, limit time.Duration, args []string) {
		var want int
		_, err := fmt.Sscan(args[0], &want)
		s.check(err)
		s.eventually(limit, args[0]+" writes", func(ctx context.Context) error {
			writes, err := s.writesSince(ctx, s.mark)
			if err == nil && len(writes) < want {
				err = fmt.Errorf("%d writes", len(writes))
			}
			return err
		})
	},
}

// eventually repeats a check; its error is shown when the time is over.
func (s *scenario) eventually(limit time.Duration, what string, check func(context.Context) error) {
	harness.Eventually(s, limit, what, check)
}

func (s *scenario) readPackage(ctx context.Context, name string) (corev1alpha1.GenericPackage, error) {
	pkg := harness.Package(s.namespace, name, "")
	err := s.cluster().Client.Get(ctx, client.ObjectKeyFromObject(pkg), pkg)
	return pkg, err
}

// available returns nil if the package's current spec is rolled out.
func (s *scenario) available(ctx context.Context, name string) error {
	pkg, err := s.readPackage(ctx, name)
	if err != nil {
		return err
	}
	for typ, want := range map[string]string{corev1alpha1.ConditionAvailable: "True", corev1alpha1.ConditionProgressing: "False"} {
		c := meta.FindStatusCondition(*pkg.StatusConditions(), typ)
		if c == nil || string(c.Status) != want || c.ObservedGeneration != pkg.GetGeneration() {
			return fmt.Errorf("generation %d, status %+v", pkg.GetGeneration(), *pkg.PackageStatus())
		}
	}
	return nil
}

// object returns the object that KIND/NAME means in the script's namespace,
// without its content.
func (s *scenario) object(arg string) *unstructured.Unstructured {
	kind, name, ok := strings.Cut(arg, "/")
	s.usage(ok, "an object is written KIND/NAME")
	gr := schema.ParseGroupResource(kind)
	gvk, err := s.cluster().Client.RESTMapper().KindFor(gr.WithVersion(""))
	s.check(err)
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetName(name)
	if namespaced, err := s.cluster().Client.IsObjectNamespaced(obj); err == nil && namespaced {
		obj.SetNamespace(s.namespace)
	}
	return obj
}

func (s *scenario) get(ctx context.Context, obj *unstructured.Unstructured) error {
	return s.cluster().Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
}

func conditionsOf(obj *unstructured.Unstructured) []any {
	all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return all
}
