package command

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// PrintTable prints rows. The first is the head.
func PrintTable(w io.Writer, rows [][]string) {
	for _, line := range terminal.Table(rows) {
		fmt.Fprintln(w, line)
	}
}

// Published is an object as programs get it: with its kind, and without managed fields and the
// like.
func Published[T interface {
	runtime.Object
	metav1.Object
}](obj T) T {
	out := obj.DeepCopyObject().(T)
	out.SetManagedFields(nil)
	// The client leaves out the kind of typed objects, but kubectl apply needs it.
	if kinds, _, err := scheme.ObjectKinds(out); err == nil && len(kinds) > 0 {
		out.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return out
}

// scheme knows the kinds of Published.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

// Where describes the packages that the flags of a list select.
func Where(cl *cluster.Cluster, ofCluster, everywhere bool) string {
	switch {
	case everywhere:
		return "at all"
	case ofCluster:
		return "in the cluster as a whole"
	}
	return "in namespace " + cl.Namespace
}

// ListNamespace is the namespace of a list, empty for all.
func ListNamespace(cl *cluster.Cluster, everywhere bool) string {
	if everywhere {
		return metav1.NamespaceAll
	}
	return cl.Namespace
}

// ClusterWide fills columns of namespaces for cluster-scoped objects.
const ClusterWide = "(cluster)"

// MostNamed is the maximum number of objects that one line names.
const MostNamed = 10
