package desired

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
)

// TargetFlags name another cluster to install in.
type TargetFlags struct{ secret, namespace string }

// Add adds the flags to a command.
func (f *TargetFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.secret, "target-kubeconfig-secret", "",
		"install in the cluster of the kubeconfig in this Secret, `NAME[/KEY]`, which is in the package's namespace, or in the manager's for a ClusterPackage; the default key is value")
	cmd.Flags().StringVar(&f.namespace, "target-namespace", "", "install in this `namespace` of that cluster (default: the namespace of the same name)")
}

// Reference returns spec.targetRef; nil if no flag is given.
func (f *TargetFlags) Reference(account string) (*corev1alpha1.TargetReference, error) {
	switch {
	case f.secret == "" && f.namespace == "":
		return nil, nil
	case f.secret == "":
		return nil, errors.New("--target-namespace is in another cluster: name that with --target-kubeconfig-secret")
	case account != "":
		return nil, errors.New("--service-account and --target-kubeconfig-secret contradict each other: objects in another cluster are written by the user of the kubeconfig")
	}

	name, key, _ := strings.Cut(f.secret, "/")
	return &corev1alpha1.TargetReference{
		KubeconfigSecretRef: corev1alpha1.KubeconfigSecretReference{Name: name, Key: key}, Namespace: f.namespace,
	}, nil
}

// KeepsTarget refuses to change the target of a package.
func KeepsTarget(t progress.Target, old *corev1alpha1.PackageSpec, want *corev1alpha1.TargetReference) error {
	if want == nil || equality.Semantic.DeepEqual(old.TargetRef, want) {
		return nil
	}
	return fmt.Errorf("%s is installed in another cluster than the one that --target-kubeconfig-secret and --target-namespace name, and this cannot be changed: delete it first, or choose another NAME", t)
}
