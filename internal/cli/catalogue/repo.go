package catalogue

import (
	"context"

	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/catalogue/bundle"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
)

// Commands returns the commands of this package.
func Commands(on command.Command) []*cobra.Command {
	return []*cobra.Command{newRepo(on), newAvailable(on), bundle.New(on)}
}

// repoCommand is shared by the commands about repositories in the cluster.
type repoCommand struct {
	command.Command
	cluster bool
}

// newRepo returns the command repo with its subcommands.
func newRepo(on command.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repo",
		Short: "Add, show and change the repositories of packages in the cluster",
		Long: `Manage the repositories of a cluster: PackageRepositories, which offer packages in their
namespace, and with --cluster ClusterPackageRepositories, which offer them in all namespaces.
kubectl package available shows the packages that they offer. To build files and images of
repositories, see kubectl package repository.`,
	}

	cmd.AddCommand(newRepoAdd(on), newRepoGet(on), newRepoUpdate(on), newRepoDelete(on))
	return cmd
}

// named completes a command whose optional argument is the name of a repository.
func (c *repoCommand) named(cmd *cobra.Command, run func(context.Context, cluster.Name) error, checks ...func() error) *cobra.Command {
	cmd.Args = command.Takes("NAME")
	cmd.ValidArgsFunction = c.Completes((*cluster.Cluster).CompleteRepositories)
	c.About(cmd, c.parse, run, checks...)
	cmd.Flags().BoolVar(&c.cluster, "cluster", false, "a ClusterPackageRepository")
	return cmd
}

// parse reads the name of a repository, if there is an argument, and adds the scope of --cluster.
func (c *repoCommand) parse(args []string) (n cluster.Name, err error) {
	if len(args) == 0 {
		return n, nil
	}
	if n, err = cluster.ParseRepository(args[0]); err != nil {
		return n, err
	}
	return n.Scoped(args[0], c.cluster)
}

// find connects, and reads a repository.
func (c *repoCommand) find(ctx context.Context, n cluster.Name) (*cluster.Cluster, corev1alpha1.GenericPackageRepository, error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	r, err := cl.FindRepository(ctx, n)
	return cl, r, err
}
