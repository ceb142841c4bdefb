package operate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/operate/rollout"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/objectsets"
	"lockstep.run/lockstep/internal/phases/drift"
)

// clusterTree is the result as JSON and YAML.
type clusterTree struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Package   string      `json:"package,omitempty"`
	Revision  int64       `json:"revision"`
	Phases    []treePhase `json:"phases"`
}

// treePhase is a phase with its objects.
type treePhase struct {
	Name    string                  `json:"name"`
	State   corev1alpha1.PhaseState `json:"state,omitempty"`
	Objects []treeObject            `json:"objects"`
	// Sealed means that objects with sensitive values are not shown.
	Sealed bool `json:"sealed,omitempty"`
}

// treeObject has the health of an object, as computed by kstatus.
type treeObject struct {
	objectdiff.ID
	Health  string `json:"health"`
	Message string `json:"message,omitempty"`
}

// newClusterTree returns Package Operator's name for status --objects.
func newClusterTree(on command.Command) *cobra.Command {
	c := &statusCommand{Command: on}
	cmd := c.About(&cobra.Command{
		Use:    "clustertree NAME",
		Short:  "Show the phases and objects of an installed package with their health: status --objects",
		Hidden: true,
		Args:   command.Takes("NAME", "[NAME]"),
	}, command.PackageName, c.tree)
	c.Output.Add(cmd)
	return cmd
}

// tree prints the objects of an installed package.
func (c *statusCommand) tree(ctx context.Context, n cluster.Name) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	c.WarnOfSilence(ctx, cl)
	tree, err := objectsOf(ctx, cl, n)
	if err != nil {
		return err
	}

	return c.Output.Write(c.Streams.Out, tree, tree.draw)
}

// objectsOf reads the objects of the newest revision of a package.
func objectsOf(ctx context.Context, cl *cluster.Cluster, n cluster.Name) (*clusterTree, error) {
	r, err := cl.Rollout(ctx, n)
	if err != nil {
		return nil, err
	}
	set := r.Current()
	if set == nil {
		return nil, fmt.Errorf("%s: %w", r, rollout.ErrNoRevision)
	}
	wanted, _, err := cl.Objects(ctx, set)
	if err != nil {
		return nil, err
	}

	at, err := cl.At(ctx, r.Target.Namespace, set.ObjectSetSpec().TargetRef)
	if err != nil {
		return nil, err
	}
	live, unreadable, err := at.Live(ctx, wanted)
	if err != nil {
		return nil, err
	}

	return treeOf(r, set, wanted, live, unreadable), nil
}

// treeOf combines the wanted objects of a revision with their live state. Messages of the engine
// about blocking objects win over kstatus's.
func treeOf(
	r *cluster.Rollout, set corev1alpha1.GenericObjectSet, wanted []objectdiff.Object,
	live map[objects.Key]*unstructured.Unstructured, unreadable map[schema.GroupKind]string,
) *clusterTree {
	t := &clusterTree{Kind: r.Target.Kind(), Namespace: r.Target.Namespace, Name: r.Target.Name, Revision: set.ObjectSetSpec().Revision, Phases: []treePhase{}}
	if resolved := r.Package.PackageStatus().Resolved; resolved != nil {
		t.Package = strings.TrimSpace(resolved.PackageName + " " + r.Package.PackageStatus().InstalledVersion())
	}
	// Any revision of the package can be the controller of an object.
	owners := map[types.UID]bool{r.Deployment.GetUID(): true}
	for _, s := range r.Sets {
		owners[s.GetUID()] = true
	}

	blocking := map[objects.Key]string{}
	for _, b := range set.ObjectSetStatus().Blocking {
		blocking[objects.Key{Group: b.Group, Kind: b.Kind, Namespace: b.Namespace, Name: b.Name}] = b.Message
	}

	recorded := objectsets.Recorded(r.Deployment.ObjectDeploymentStatus())
	states := map[string]corev1alpha1.PhaseState{}
	for _, ph := range set.ObjectSetStatus().Phases {
		states[ph.Name] = ph.State
	}

	for _, ph := range set.ObjectSetSpec().Phases {
		phase := treePhase{Name: ph.Name, State: states[ph.Name], Sealed: len(ph.SecretSlices) > 0, Objects: []treeObject{}}
		for _, o := range wanted {
			if o.Phase != ph.Name {
				continue
			}
			leaf := treeObject{ID: objectdiff.IDOf(o.Key)}
			leaf.Version = schema.FromAPIVersionAndKind(fmt.Sprint(o.Value["apiVersion"]), o.Key.Kind).Version
			leaf.Health, leaf.Message = health(live[o.Key], unreadable[o.Key.GroupKind()], owners)
			// The agent of the class decides about these objects, not the engine.
			if ph.Class != "" && ph.Class != corev1alpha1.PhaseClassDefault {
				leaf.Health, leaf.Message = string(status.UnknownStatus), fmt.Sprintf("the agent of class %q writes it", ph.Class)
			}

			// A Job that already succeeded with this content is not created again.
			if leaf.Health == string(status.NotFoundStatus) {
				content := &objects.Desired{Content: drift.ContentDigest(apinames.Default, o.Value)}
				if recorded[o.Key].Succeeded(content) {
					leaf.Health, leaf.Message = string(status.CurrentStatus), "completed earlier, and does not run again"
				}
			}
			if message := blocking[o.Key]; message != "" {
				leaf.Message = message
			}
			phase.Objects = append(phase.Objects, leaf)
		}

		t.Phases = append(t.Phases, phase)
	}

	return t
}

// health is computed by kstatus.
func health(u *unstructured.Unstructured, unreadable string, owners map[types.UID]bool) (state, message string) {
	switch {
	case unreadable != "":
		return string(status.UnknownStatus), unreadable
	case u == nil:
		return string(status.NotFoundStatus), ""
	}

	if owner := apinames.Default.ControllerOf(u); owner == nil || !owners[owner.UID] {
		by := "nobody"
		if owner != nil {
			by = owner.Kind + " " + owner.Name
		}
		message = "controlled by " + by + ", not by this package"
	}

	result, err := status.Compute(u)
	if err != nil {
		return string(status.UnknownStatus), cmp.Or(message, "its status cannot be read")
	}
	if result.Status != status.CurrentStatus {
		message = cmp.Or(message, result.Message)
	}

	return string(result.Status), message
}

// draw returns the tree as text, in Package Operator's form.
func (t *clusterTree) draw(styles terminal.Styles) string {
	var b strings.Builder
	name := t.Namespace + "/" + t.Name
	fmt.Fprintf(&b, "%s\n%s %s  revision %d\n", terminal.Line(cmp.Or(t.Package, t.Name)), t.Kind, terminal.Line(name), t.Revision)
	for i, ph := range t.Phases {
		branch, stem := "├── ", "│   "
		if i == len(t.Phases)-1 {
			branch, stem = "└── ", "    "
		}
		fmt.Fprintf(&b, "%sPhase %s  %s\n", branch, terminal.Line(ph.Name), styles.Faint(terminal.Line(cmp.Or(string(ph.State), "Waiting"))))
		if ph.Sealed {
			fmt.Fprintf(&b, "%s%s\n", stem, styles.Faint("(objects with sensitive values are not shown)"))
		}

		for j, o := range ph.Objects {
			leaf, below := "├── ", "│   "
			if j == len(ph.Objects)-1 {
				leaf, below = "└── ", "    "
			}
			gvk := schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}
			fmt.Fprintf(&b, "%s%s%s  %s\n", stem, leaf, terminal.Line(fmt.Sprintf("%s %s/%s", gvk, o.Namespace, o.Name)), healthStyle(styles, o.Health))
			if o.Message != "" {
				fmt.Fprintf(&b, "%s%s    %s\n", stem, below, styles.Faint(terminal.Line(o.Message)))
			}
		}
	}

	return b.String()
}

// healthStyle returns a state of kstatus in its colour.
func healthStyle(styles terminal.Styles, health string) string {
	switch status.Status(health) {
	case status.CurrentStatus:
		return styles.Good(health)
	case status.FailedStatus:
		return styles.Bad(health)
	case status.InProgressStatus, status.TerminatingStatus:
		return styles.Busy(health)
	}
	return styles.Faint(health)
}
