package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
)

func newRollout(on command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Look at the revisions of a package, compare them, and go back",
		Long: `Look at the revisions of a package or deployment, compare them, and go back to one.

RESOURCE is NAME, or package/NAME, clusterpackage/NAME, objectdeployment/NAME or
clusterobjectdeployment/NAME; kind and name may be two arguments as well.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRolloutHistory(on), newRolloutDiff(on), newRolloutStatus(on), newRolloutUndo(on))
	return cmd
}

// positive checks numbers of revisions; 0 is one that is not given.
func positive(flag string, n *int64) func() error {
	return func() error {
		if *n < 0 {
			return fmt.Errorf("--%s must be positive", flag)
		}
		return nil
	}
}

func previous(r *cluster.Rollout, of corev1alpha1.GenericObjectSet) (corev1alpha1.GenericObjectSet, error) {
	var found corev1alpha1.GenericObjectSet
	for _, set := range r.Sets {
		if set.ObjectSetSpec().Revision < of.ObjectSetSpec().Revision {
			found = set
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no revision before %d", r, of.ObjectSetSpec().Revision)
	}
	return found, nil
}

var errNoRevision = errors.New("it has no revision yet")
