package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// repoAddCommand is kubectl package repo add.
type repoAddCommand struct {
	repoCommand
	spec repoSpecFlags
}

// newRepoAdd returns the command repo add.
func newRepoAdd(on command.Command) *cobra.Command {
	c := &repoAddCommand{repoCommand: repoCommand{Command: on}}
	cmd := &cobra.Command{
		Use:   "add NAME [IMAGE]",
		Short: "Add a repository, and wait for its list of packages",
		Long: `Add a repository of packages to the namespace, or with --cluster to the whole cluster, and wait until its
content is fetched: an OCI image, an archive or file on a web server (--http), or a git repository (--git).

The manager fetches it, so addresses are as the cluster sees them. Secrets with credentials are in the
namespace of the repository, or for a cluster repository in the manager's. For fields without a flag, such as the
interval, the priority or a folder in a git repository, see docs/api-reference.md.`,
		Example: `  kubectl package repo add stable registry.example.com/repositories/stable:latest
  kubectl package repo add stable registry.example.com/repositories/stable --tag-constraint '>=1' --secret-ref pull
  kubectl package repo add team --git https://git.example.com/team/packages.git --ref main --cluster`,
	}

	c.named(cmd, nil)
	cmd.Args, cmd.ValidArgsFunction = command.Takes("NAME", "[IMAGE]"), cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := c.parse(args)
		if len(args) > 1 {
			if c.spec.image != "" && c.spec.image != args[1] {
				err = cmp.Or(err, fmt.Errorf("%s and --url %s contradict each other", args[1], c.spec.image))
			}
			// The argument is the same as --url, so it is set as that flag and checked only once.
			err = cmp.Or(err, cmd.Flags().Set("url", args[1]))
		}

		if err = cmp.Or(err, c.spec.check(), c.checkNew(n)); err != nil {
			return command.UsageError(cmd, err)
		}
		r := &corev1alpha1.PackageRepositorySpec{}
		if err := c.spec.apply(r); err != nil {
			return command.UsageError(cmd, err)
		}

		return c.run(cmd.Context(), n, r)
	}

	c.spec.add(cmd)
	c.AddWait(cmd, repoTimeout, "wait until the repository is fetched")
	return cmd
}

// checkNew returns an error of usage for an invalid name or a missing source.
func (c *repoAddCommand) checkNew(n cluster.Name) error {
	if problems := validation.IsDNS1123Subdomain(n.Name); len(problems) > 0 {
		return fmt.Errorf("NAME %q cannot be the name of a repository: %s", n.Name, problems[0])
	}
	if !slices.ContainsFunc(sourceNames, c.spec.given) {
		return errors.New("the repository has no source: name an IMAGE, or set --http or --git")
	}
	return nil
}

// run creates the repository. An existing repository with the same spec is not an error, so that
// scripts can repeat the command.
func (c *repoAddCommand) run(ctx context.Context, n cluster.Name, spec *corev1alpha1.PackageRepositorySpec) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	r := cl.NewRepository(cmp.Or(n.Scope, corev1alpha1.ScopeNamespaced), n.Name)
	name := cluster.RepositoryText(r)
	*r.RepositorySpec() = *spec
	what := "added"
	err = cl.Create(ctx, r.(client.Object), client.FieldOwner(command.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		if r, err = cl.FindRepository(ctx, cluster.Name{Scope: corev1alpha1.ScopeOf(r.GetNamespace()), Name: n.Name}); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(r.RepositorySpec(), spec) {
			return fmt.Errorf("%s exists and differs. Change it with kubectl package repo update %s and the flags that differ, or choose another name", name, cluster.RepositoryFlags(r))
		}
		what = "is already up to date"
	}

	if err != nil {
		return cl.Explain("cannot create "+name, err)
	}
	return c.report(ctx, cl, r, what, "")
}

// report prints the outcome, and waits if the flags require it.
func (c *repoCommand) report(ctx context.Context, cl *cluster.Cluster, r corev1alpha1.GenericPackageRepository, what, retry string) error {
	fmt.Fprintln(c.Streams.Out, terminal.Line(cluster.RepositoryText(r)+" "+what))
	if !c.Wait {
		return nil
	}
	return c.awaitRepository(ctx, cl, r, retry)
}

// repoUpdateCommand is kubectl package repo update.
type repoUpdateCommand struct {
	repoCommand
	spec   repoSpecFlags
	paused bool
}

// newRepoUpdate returns the command repo update.
func newRepoUpdate(on command.Command) *cobra.Command {
	c := &repoUpdateCommand{repoCommand: repoCommand{Command: on}}
	cmd := &cobra.Command{
		Use:        "update NAME",
		SuggestFor: []string{"kick"},
		Short:      "Change a repository, or fetch it again at once, and wait for its list of packages",
		Long: `Change the fields of a repository that the flags name. If they do not change it, it is fetched
again at once, instead of after its interval or the pause after a failure. With --paused it is not fetched
any more, but its packages are still offered.`,
	}

	c.spec.add(cmd)
	c.named(cmd, c.run, c.spec.check)
	cmd.Flags().BoolVar(&c.paused, "paused", false, "stop fetching; --paused=false resumes it")
	c.AddWait(cmd, repoTimeout, "wait until the repository is fetched")
	return cmd
}

// run changes the repository and waits. A paused repository is not fetched, so it does not wait for
// one.
func (c *repoUpdateCommand) run(ctx context.Context, n cluster.Name) error {
	var (
		cl          *cluster.Cluster
		r           corev1alpha1.GenericPackageRepository
		what, fetch string
	)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) { // the manager might be writing the status
		if cl, r, err = c.find(ctx, n); err != nil {
			return err
		}
		before := r.DeepCopyObject().(client.Object)
		if what, fetch, err = c.change(r); err != nil {
			return err
		}
		return cl.Patch(ctx, r.(client.Object), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(command.FieldManager))
	})

	var refused apierrors.APIStatus
	switch {
	// Only an answer of the API server needs an explanation. Errors of the flags have their own.
	case errors.As(err, &refused):
		return cl.Explain("cannot change "+cluster.RepositoryText(r), err)
	case err != nil:
		return err
	}

	c.Wait = c.Wait && !r.RepositorySpec().Paused
	return c.report(ctx, cl, r, what, fetch)
}

// change changes the fields that the flags name. If this changes no field, it requests a fetch,
// which it returns.
func (c *repoUpdateCommand) change(r corev1alpha1.GenericPackageRepository) (what, fetch string, err error) {
	spec := r.RepositorySpec()
	before := spec.DeepCopy()
	if err := c.spec.apply(spec); err != nil {
		return "", "", err
	}
	if c.spec.given("paused") {
		spec.Paused = c.paused
	}

	switch {
	case !equality.Semantic.DeepEqual(before, spec):
		return "changed", "", nil
	case c.paused:
		return "is already up to date", "", nil
	case spec.Paused:
		return "", "", fmt.Errorf("%s is paused, so it is not fetched. To resume it: kubectl package repo update %s --paused=false",
			cluster.RepositoryText(r), cluster.RepositoryFlags(r))
	}

	fetch = time.Now().UTC().Format(time.RFC3339Nano)
	annotations := r.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1alpha1.RetryAnnotation] = fetch
	r.SetAnnotations(annotations)

	return "is fetched again", fetch, nil
}

// newRepoDelete returns the command repo delete.
func newRepoDelete(on command.Command) *cobra.Command {
	c := &repoCommand{Command: on}
	cmd := c.named(&cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a repository, and keep the packages that were installed from it",
		Long: `Delete a repository, and wait until it offers no packages any more. Packages that were installed from
it stay installed, but get no new versions from it.`,
	}, c.delete)
	c.AddWait(cmd, repoTimeout, "wait until it is removed")
	return cmd
}

// delete deletes a repository, and waits until it no longer exists. The UID guards against a new
// one of the same name.
func (c *repoCommand) delete(ctx context.Context, n cluster.Name) error {
	cl, r, err := c.find(ctx, n)
	if err != nil {
		return err
	}
	name := cluster.RepositoryText(r)
	err = cl.Delete(ctx, r.(client.Object), client.Preconditions{UID: ptr.To(r.GetUID())})
	if err != nil && !apierrors.IsNotFound(err) {
		return cl.Explain("cannot delete "+name, err)
	}

	if !c.Wait {
		fmt.Fprintln(c.Streams.Out, terminal.Line(name+" is being deleted"))
		return nil
	}
	begin := time.Now()
	if err := c.awaitGone(ctx, cl, r); err != nil {
		return err
	}

	fmt.Fprintf(c.Streams.Out, "%s is deleted, after %s\n", terminal.Line(name), progress.Elapsed(time.Since(begin)))
	return nil
}
