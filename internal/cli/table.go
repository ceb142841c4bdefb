package cli

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// printTable prints rows, of which the first is the head.
func printTable(w io.Writer, rows [][]string) {
	for _, line := range terminal.Table(rows) {
		fmt.Fprintln(w, line)
	}
}

// published is an object as programs get it: with its kind, and without what servers keep about fields.
func published[T interface {
	runtime.Object
	metav1.Object
}](obj T) T {
	out := obj.DeepCopyObject().(T)
	out.SetManagedFields(nil)
	if kinds, _, err := scheme.ObjectKinds(out); err == nil && len(kinds) > 0 {
		out.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return out
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1alpha1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()
