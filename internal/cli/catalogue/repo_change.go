package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
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
	"lockstep.run/lockstep/internal/cli/desired"
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

// repoSpecFlags are the fields of a repository.
type repoSpecFlags struct {
	image, http, git string
	ref              string
	secrets          []string
	tags             desired.SelectionFlags
	given            func(flag string) bool
}

// add adds the flags to a command.
func (f *repoSpecFlags) add(cmd *cobra.Command) {
	f.given = cmd.Flags().Changed
	flags := cmd.Flags()
	flags.StringVar(&f.image, "url", "", "fetch the OCI image with this `reference`, the same as IMAGE")
	flags.StringVar(&f.http, "http", "", "fetch this `URL` of a tar archive, with or without gzip, or of a YAML file")
	flags.StringVar(&f.git, "git", "", "fetch the git repository at this `URL`")
	flags.StringVar(&f.ref, "ref", "", "fetch this branch, tag or commit of the git repository instead of its default branch")
	flags.StringArrayVar(&f.secrets, "secret-ref", nil, "use the credentials in the Secret with this `name`; repeatable for pull secrets of an image")
	f.tags.Add(cmd, "tag-constraint", "take the highest tag of the image or git repository that fits, such as '>=1.2, <2'", "include tags with a prerelease")
}

// sourceNames are the flags that name the source of a repository.
var sourceNames = []string{"url", "http", "git"}

// check returns an error of usage.
func (f *repoSpecFlags) check() error {
	var given []string
	for _, name := range sourceNames {
		if f.given(name) {
			given = append(given, "--"+name)
		}
	}

	if len(given) > 1 {
		return fmt.Errorf("%s contradict each other: choose one", strings.Join(given, " and "))
	}

	for _, address := range []string{f.http, f.git} {
		// Every user with rights on repositories can read the address in the object. The user name
		// of SSH is not secret.
		if u, err := url.Parse(address); err == nil && u.User != nil {
			if _, password := u.User.Password(); password || address == f.http {
				return errors.New("the URL has credentials: put them into a Secret, and name it with --secret-ref")
			}
		}
	}

	if f.image != "" {
		if _, err := name.ParseReference(f.image); err != nil {
			return fmt.Errorf("%q is not a valid image: write it as host/path:tag or host/path@sha256:…", f.image)
		}
	}

	return f.tags.Check()
}

// apply changes a spec according to the flags.
func (f *repoSpecFlags) apply(spec *corev1alpha1.PackageRepositorySpec) error {
	f.source(&spec.Source)
	if f.given("ref") {
		if spec.Source.Git == nil {
			return errors.New("--ref is for --git")
		}
		spec.Source.Git.Ref = f.ref
	}

	return cmp.Or(f.setSecrets(&spec.Source), f.setTags(&spec.Source))
}

// source replaces the source if a flag names one. The other fields of the source stay if its kind
// does.
func (f *repoSpecFlags) source(s *corev1alpha1.RepositorySource) {
	switch {
	case f.given("url") || f.image != "":
		image := cmp.Or(s.Image, &corev1alpha1.RepositoryImageSource{})
		image.Ref = f.image
		*s = corev1alpha1.RepositorySource{Image: image}
	case f.given("http"):
		file := cmp.Or(s.HTTP, &corev1alpha1.RepositoryHTTPSource{})
		file.URL, file.SHA256 = f.http, "" // they belong to the other file
		*s = corev1alpha1.RepositorySource{HTTP: file}
	case f.given("git"):
		git := cmp.Or(s.Git, &corev1alpha1.RepositoryGitSource{})
		git.URL = f.git
		*s = corev1alpha1.RepositorySource{Git: git}
	}
}

// setSecrets sets the Secrets with credentials. Only an image can have several.
func (f *repoSpecFlags) setSecrets(s *corev1alpha1.RepositorySource) error {
	if !f.given("secret-ref") {
		return nil
	}
	var refs []corev1alpha1.LocalSecretReference
	for _, name := range f.secrets {
		if name != "" { // --secret-ref "" takes it away
			refs = append(refs, corev1alpha1.LocalSecretReference{Name: name})
		}
	}

	var first *corev1alpha1.LocalSecretReference
	if len(refs) > 0 {
		first = &refs[0]
	}

	switch {
	case s.Image != nil:
		s.Image.ImagePullSecrets = refs
	case len(refs) > 1:
		return errors.New("--secret-ref can be given once, except for an image")
	case s.HTTP != nil:
		s.HTTP.SecretRef = first
	case s.Git != nil:
		s.Git.SecretRef = first
	default:
		return errors.New("--secret-ref is for an image, --http and --git")
	}

	return nil
}

// setTags sets the selection of tags. Files on a web server have no tags.
func (f *repoSpecFlags) setTags(s *corev1alpha1.RepositorySource) error {
	if !f.tags.Given() {
		return nil
	}
	var selection **corev1alpha1.VersionSelection
	switch {
	case s.Image != nil:
		selection = &s.Image.TagSelection
	case s.Git != nil:
		selection = &s.Git.TagSelection
	default:
		return errors.New("--tag-constraint and --prereleases are for an image and --git")
	}

	*selection = cmp.Or(*selection, &corev1alpha1.VersionSelection{})
	f.tags.Change(*selection)
	return nil
}
