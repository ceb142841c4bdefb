package catalogue

import (
	"cmp"
	"context"
	"fmt"
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
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/output"
	"lockstep.run/lockstep/internal/cli/terminal"
)

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
		fmt.Fprintln(c.Streams.ErrOut, "There is no repository. Add one: kubectl package repo add NAME IMAGE")
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
