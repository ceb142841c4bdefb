package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/catalogue/bundle"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
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

const (
	// repoTimeout is the default for one fetch.
	repoTimeout = 2 * time.Minute
	// fetchGrace is the grace period after a failed fetch, which the manager repeats.
	fetchGrace = 10 * time.Second
)

// awaitRepository waits until a repository is fetched according to its spec, and after the retry if
// one was requested.
func (c *repoCommand) awaitRepository(ctx context.Context, cl *cluster.Cluster, r corev1alpha1.GenericPackageRepository, retry string) error {
	begin, name, see := time.Now(), cluster.RepositoryText(r), "\nSee: kubectl package repo get "+cluster.RepositoryFlags(r)
	lines := progressLines{out: c.Streams.ErrOut, begin: begin}
	uid, last := r.GetUID(), ""
	var failing time.Time
	err := c.Await(ctx, cl, r, name, "is not ready", func() string { return last + see }, func() (bool, error) {
		if r.GetUID() != uid {
			return false, fmt.Errorf("%s was deleted in the meantime", name)
		}
		word, failure, done := repositoryState(r, retry)
		if failure == "" {
			failing = time.Time{}
		} else if failing.IsZero() {
			failing = time.Now()
		}

		last = word
		if word == waitingForManager && time.Since(begin) < progress.UnnoticedAfter {
			word = "waiting for the manager"
		}
		lines.show(word)
		if failure != "" && (meta.IsStatusConditionTrue(*r.StatusConditions(), corev1alpha1.ConditionStalled) || time.Since(failing) >= fetchGrace) {
			return false, fmt.Errorf("%s is not ready: %s%s", name, failure, see)
		}

		return done, nil
	})
	if err != nil {
		return err
	}

	status := r.RepositoryStatus()
	fmt.Fprintf(c.Streams.Out, "%s is ready: %s, %s, after %s\n", terminal.Line(name), terminal.Count(int(status.Packages), "package"),
		terminal.Count(int(status.Versions), "version"), progress.Elapsed(time.Since(begin)))
	// A ready repository can have problems nevertheless.
	for _, problem := range status.Problems {
		fmt.Fprintln(c.Streams.ErrOut, "warning: "+terminal.Line(problem))
	}
	if conflict := meta.FindStatusCondition(*r.StatusConditions(), corev1alpha1.ConditionConflicting); conflict != nil && conflict.Status == metav1.ConditionTrue {
		fmt.Fprintln(c.Streams.ErrOut, "warning: "+terminal.Line(conflict.Message))
	}
	return nil
}

// waitingForManager is the state before the manager has noticed a change.
const waitingForManager = progress.Unnoticed

// repositoryState returns the state of a repository in words, the reason of a failure, and whether
// the fetch is done.
func repositoryState(r corev1alpha1.GenericPackageRepository, retry string) (word, failure string, done bool) {
	ready := meta.FindStatusCondition(*r.StatusConditions(), corev1alpha1.ConditionReady)
	switch {
	case r.RepositorySpec().Paused:
		return "paused", "it is paused, so it is not fetched. To resume it: kubectl package repo update " + cluster.RepositoryFlags(r) + " --paused=false", false
	// The status is about an earlier spec, or about the fetch before the requested one.
	case ready == nil || ready.ObservedGeneration < r.GetGeneration() || retry != "" && r.RepositoryStatus().LastHandledRetry != retry:
		return waitingForManager, "", false
	case ready.Status == metav1.ConditionTrue:
		return "ready", "", true
	case meta.IsStatusConditionTrue(*r.StatusConditions(), corev1alpha1.ConditionStalled):
		return "failed", ready.Message, false
	case ready.Reason == corev1alpha1.ReasonFetchFailed || ready.Reason == corev1alpha1.ReasonContentInvalid:
		return "trying again: " + ready.Message, ready.Message, false
	}

	return "fetching", "", false
}

// awaitGone waits until a repository no longer exists.
func (c *repoCommand) awaitGone(ctx context.Context, cl *cluster.Cluster, r corev1alpha1.GenericPackageRepository) error {
	uid := r.GetUID()
	lines := progressLines{out: c.Streams.ErrOut, begin: time.Now()}
	// gone ends the wait when another repository has taken the name.
	gone := errors.New("gone")
	held := func() string {
		return "it is held by the finalizers " + strings.Join(r.GetFinalizers(), ", ") + ". Is lockstep-manager running?"
	}
	err := c.Await(ctx, cl, r, cluster.RepositoryText(r), "still exists", held, func() (bool, error) {
		if r.GetUID() != uid {
			return false, gone
		}
		lines.show("withdrawing its packages")
		return false, nil
	})

	var status apierrors.APIStatus
	if errors.Is(err, gone) || errors.As(err, &status) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// progressLines writes a line for each change.
type progressLines struct {
	out   io.Writer
	begin time.Time
	last  string
}

// show writes a line unless it repeats the last one.
func (p *progressLines) show(word string) {
	if word = terminal.Line(word); word != p.last {
		fmt.Fprintf(p.out, "%7s  %s\n", progress.Elapsed(time.Since(p.begin)), word)
	}
	p.last = word
}

// repoGetCommand is kubectl package repo get.
type repoGetCommand struct {
	repoCommand
	everywhere bool
}

// newRepoGet returns the command repo get.
func newRepoGet(on command.Command) *cobra.Command {
	c := &repoGetCommand{repoCommand: repoCommand{Command: on}}
	cmd := &cobra.Command{
		Use: "get [NAME]", Aliases: []string{"list"},
		Short: "Show the repositories of the namespace and of the cluster, or one of them",
		Long: `List the repositories of the namespace and of the cluster, and their states. With NAME, show the source of a
repository, its packages, and its problems.`,
	}

	c.named(cmd, c.run)
	cmd.Args = command.Takes("[NAME]")
	cmd.Flags().Lookup("cluster").Usage = "show a ClusterPackageRepository, or only these"
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "list the repositories of all namespaces")
	c.Output.Add(cmd, output.Names)
	return cmd
}

// run prints the repositories, or one of them with its problems.
func (c *repoGetCommand) run(ctx context.Context, n cluster.Name) error {
	cl, err := c.Connect()
	switch {
	case err != nil:
		return err
	case n.Name == "":
		return c.list(ctx, cl)
	}

	r, err := cl.FindRepository(ctx, n)
	if err != nil {
		return err
	}
	c.WarnOfSilence(ctx, cl)
	return c.Output.Write(c.Streams.Out, published(r), func(styles terminal.Styles) string { return repositoryScreen(r, styles) })
}

// list prints the repositories. If the user may not read the ones of the cluster, it leaves them
// out, unless --cluster requires them.
func (c *repoGetCommand) list(ctx context.Context, cl *cluster.Cluster) error {
	var found []corev1alpha1.GenericPackageRepository
	for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeNamespaced, corev1alpha1.ScopeCluster} {
		if c.cluster && scope == corev1alpha1.ScopeNamespaced {
			continue
		}
		list, namespace := scope.NewPackageRepositoryList(), ""
		if scope == corev1alpha1.ScopeNamespaced && !c.everywhere {
			namespace = cl.Namespace
		}
		err := cl.List(ctx, list, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) && scope == corev1alpha1.ScopeCluster && !c.cluster {
			continue
		}
		if err != nil {
			return cl.Explain("cannot read the repositories", err)
		}
		found = append(found, list.GenericRepositories()...)
	}

	if c.Output.Wanted() {
		items := output.List{}
		for _, r := range found {
			items.Items = append(items.Items, published(r))
		}
		return c.Output.Print(c.Streams.Out, items)
	}

	if len(found) == 0 {
		fmt.Fprintln(c.Streams.ErrOut, "No repositories found. Add one: kubectl package repo add NAME IMAGE")
		return nil
	}
	styles := terminal.StylesFor(c.Streams.Out)
	rows := [][]string{{"NAMESPACE", "NAME", "SOURCE", "PACKAGES", "VERSIONS", "STATUS", "AGE"}}
	for _, r := range found {
		kind, address := cluster.RepositorySource(&r.RepositorySpec().Source)
		rows = append(rows, []string{
			cmp.Or(r.GetNamespace(), command.ClusterWide), r.GetName(), terminal.Line(kind + " " + address), strconv.Itoa(int(r.RepositoryStatus().Packages)),
			strconv.Itoa(int(r.RepositoryStatus().Versions)), repositoryWord(r, styles), duration.HumanDuration(time.Since(r.GetCreationTimestamp().Time)),
		})
	}

	command.PrintTable(c.Streams.Out, rows)
	return nil
}

// published returns a repository to print, without possible credentials: kubectl apply keeps a copy
// of the spec.
func published(r corev1alpha1.GenericPackageRepository) corev1alpha1.GenericPackageRepository {
	out := r.DeepCopyObject().(corev1alpha1.GenericPackageRepository)
	// The client leaves out the kind of typed objects, but kubectl apply needs it.
	kind := corev1alpha1.ScopeOf(r.GetNamespace()).Kind("PackageRepository")
	out.GetObjectKind().SetGroupVersionKind(corev1alpha1.GroupVersion.WithKind(kind))
	out.SetManagedFields(nil)
	cluster.ConcealSource(&out.RepositorySpec().Source)
	annotations := out.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	out.SetAnnotations(annotations)
	return out
}

// repositoryWord returns the state of a repository in a colour.
func repositoryWord(r corev1alpha1.GenericPackageRepository, styles terminal.Styles) string {
	word, works := cluster.RepositoryState(r)
	switch works {
	case metav1.ConditionTrue:
		return styles.Good(word)
	case metav1.ConditionFalse:
		return styles.Bad(terminal.Line(word))
	}
	return styles.Busy(word)
}

// repositoryScreen returns the screen of one repository.
func repositoryScreen(r corev1alpha1.GenericPackageRepository, styles terminal.Styles) string {
	t := terminal.Writer{Styles: styles}
	field := func(name, value string) { t.Field(9, name, value) }
	t.Line(styles.Strong(terminal.Line(cluster.RepositoryText(r))))
	field("Status", repositoryWord(r, styles))
	for _, typ := range []string{corev1alpha1.ConditionReady, corev1alpha1.ConditionConflicting} {
		condition := meta.FindStatusCondition(*r.StatusConditions(), typ)
		// Ready is bad if it is False, and Conflicting is bad if it is True.
		if bad := metav1.ConditionStatus(map[bool]string{true: "False", false: "True"}[typ == corev1alpha1.ConditionReady]); condition != nil && condition.Status == bad {
			for line := range strings.Lines(condition.Message) {
				field("", terminal.Line(strings.TrimSpace(line)))
			}
		}
	}

	spec, status := r.RepositorySpec(), r.RepositoryStatus()
	kind, address := cluster.RepositorySource(&spec.Source)
	field("Source", terminal.Line(kind+" "+address))
	interval := corev1alpha1.DefaultRepositoryInterval
	if spec.Interval != nil {
		interval = duration.HumanDuration(spec.Interval.Duration)
	}

	field("Interval", interval)
	if spec.Priority != 0 {
		field("Priority", strconv.Itoa(int(spec.Priority)))
	}
	if status.Artifact != nil {
		field("Digest", terminal.Line(status.Artifact.Digest))
		field("Revision", terminal.Line(status.Artifact.Revision))
	}

	field("Offers", terminal.Count(int(status.Packages), "package")+", "+terminal.Count(int(status.Versions), "version"))
	field("Age", duration.HumanDuration(time.Since(r.GetCreationTimestamp().Time)))
	if len(status.Problems) > 0 {
		t.Line(styles.Strong("Problems"))
		for _, problem := range status.Problems {
			t.Line("  " + styles.Bad(terminal.Line(problem)))
		}
	}

	return t.String()
}
