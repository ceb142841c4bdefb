package support

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/diagnose"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/internal/kube/version"
)

const (
	pageSize         = 50     // objects in one response to support: an ObjectSet can have 1 MiB
	supportExplained = 50     // packages that support explains, with some ten requests each
	supportLogLines  = 10_000 // of each container's log, some 2 MiB
)

// supportCommand is kubectl package support.
type supportCommand struct {
	command.Command
	file, manager string
	dryRun        bool
}

// New returns the command.
func New(on command.Command) *cobra.Command {
	c := &supportCommand{Command: on}
	cmd := &cobra.Command{
		Use:   "support",
		Short: "Save the state of the cluster for a maintainer, without secrets, into a file",
		Long: `Save the information that a maintainer needs into one file: versions and flags of the manager, the engine's own
objects without config and content, their Events, the manager's logs and Lease, and the output of explain for
up to 50 packages that are not available. CONTENTS.txt lists the missing parts, with reasons.

Secrets are not read. Values of config, credentials in URLs, private keys and tokens are replaced by
[redacted]; a value of configFrom that another controller quotes is not recognised. Look through the file
before you pass it on.`,
		Example: `  kubectl package support --dry-run
  kubectl package support -o support.tar.gz`,
		Args: command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}

	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().StringVarP(&c.file, "output", "o", "", "write to this `file`, which must not exist (default lockstep-support-TIME.tar.gz)")
	cmd.Flags().StringVar(&c.manager, "manager-namespace", corev1alpha1.DefaultNamespace, "`namespace` of the manager")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "read everything, and list the contents without writing the file")

	return cmd
}

// run gathers the information, prints the contents, and writes the archive. An existing file is
// never overwritten.
func (c *supportCommand) run(ctx context.Context) error {
	cl, err := c.Connect()
	if err != nil {
		return err
	}
	all, err := cl.AnyKind()
	if err != nil {
		return err
	}

	g := &gathering{Cluster: cl, all: all, manager: c.manager, archive: &Archive{Created: time.Now().UTC().Truncate(time.Second)}}
	if err := g.run(ctx); err != nil {
		return err
	}
	fmt.Fprint(c.Streams.Out, terminal.Text(g.archive.Contents()))
	if c.dryRun {
		return nil
	}

	file := c.file
	if file == "" {
		file = "lockstep-support-" + g.archive.Created.Format("20060102-150405") + ".tar.gz"
	}
	// Only the user can read the file, because the redaction is not perfect.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	if err := errors.Join(g.archive.Write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	fmt.Fprintln(c.Streams.Out, "\nSaved to "+terminal.Line(file)+". Read it before you pass it on.")
	return nil
}

// gathering first reads all objects, and then adds texts without the sensitive values of these
// objects.
type gathering struct {
	*cluster.Cluster
	all     client.Client
	manager string
	archive *Archive

	// objects have only the fields that the archive shows.
	objects   map[string][]map[string]any // by kind
	names     map[string]bool
	sensitive map[string]bool
	values    int // their size in bytes
	redactor  *Redactor
}

// run reads everything into the archive. A part that cannot be read is recorded as missing.
func (g *gathering) run(ctx context.Context) error {
	found, hidden, err := g.Packages(ctx) // fails if the cluster cannot be reached, which an archive would not show
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	for _, what := range hidden {
		g.archive.Lack(what, "they may not be listed")
	}

	g.objects, g.names, g.sensitive = map[string][]map[string]any{}, map[string]bool{}, map[string]bool{}
	for _, kind := range g.kinds() {
		g.read(ctx, corev1alpha1.GroupVersion.WithKind(kind), "", nil)
	}

	inManager := []client.ListOption{client.InNamespace(g.manager)}
	g.read(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, g.manager, inManager)
	g.read(ctx, corev1.SchemeGroupVersion.WithKind("Pod"), g.manager, inManager)
	g.read(ctx, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, g.manager, inManager)
	g.read(ctx, corev1.SchemeGroupVersion.WithKind("Event"), "of the engine's kinds", []client.ListOption{client.MatchingFields{"involvedObject.apiVersion": corev1alpha1.GroupVersion.String()}})
	g.read(ctx, corev1.SchemeGroupVersion.WithKind("Event"), g.manager, inManager)
	if err := ctx.Err(); err != nil {
		return err
	}

	// All sensitive values must be known before the first text is redacted.
	g.redactor = NewRedactor(slices.Sorted(maps.Keys(g.sensitive)), g.names)
	if !g.redactor.Complete() {
		g.archive.Lack("texts", "the packages have too much config to search texts for, so all texts of several words are withheld")
	}
	g.addVersions()
	g.addExplanations(ctx, found)
	for _, kind := range slices.Sorted(maps.Keys(g.objects)) {
		g.addObjects(kind)
	}

	g.addLogs(ctx)
	g.archive.Lack("metrics", "the manager only serves them to accounts with the role lockstep-metrics-reader: see docs/administrate/watch.md")
	return ctx.Err()
}

// kinds returns the engine's own kinds.
func (g *gathering) kinds() (kinds []string) {
	for kind := range g.Scheme().KnownTypes(corev1alpha1.GroupVersion) {
		if g.Scheme().Recognizes(corev1alpha1.GroupVersion.WithKind(kind + "List")) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// read reads the objects of a kind, of all namespaces if the user may. Its pages are small because
// an ObjectSet can have 1 MiB.
func (g *gathering) read(ctx context.Context, kind schema.GroupVersionKind, where string, opts []client.ListOption) {
	err := g.list(ctx, kind, opts)
	if apierrors.IsForbidden(err) && where == "" && g.Namespace != "" {
		g.archive.Lack(kind.Kind, "the ones outside namespace "+g.Namespace+" may not be listed")
		err = g.list(ctx, kind, []client.ListOption{client.InNamespace(g.Namespace)})
	}
	if err != nil {
		g.archive.Lack(strings.TrimSpace(kind.Kind+" "+where), err.Error())
	} else if g.objects[kind.Kind] == nil {
		g.objects[kind.Kind] = []map[string]any{} // an empty list means that there are none
	}
}

// list reads the objects of a kind, page by page. It keeps few fields of each, and none once there
// are more than fit into the archive.
func (g *gathering) list(ctx context.Context, kind schema.GroupVersionKind, opts []client.ListOption) error {
	sizes := 0
	pages := pager.New(func(ctx context.Context, raw metav1.ListOptions) (apiruntime.Object, error) {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page, g.all.List(ctx, page, append([]client.ListOption{client.Limit(raw.Limit), client.Continue(raw.Continue)}, opts...)...)
	})

	pages.PageSize, pages.PageBufferSize = pageSize, 0
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item apiruntime.Object) error {
		u := item.(*unstructured.Unstructured)
		for _, value := range Sensitive(u.Object) {
			if !g.sensitive[value] && g.values <= MaxValues {
				g.sensitive[value], g.values = true, g.values+len(value)
			}
		}

		g.names[u.GetName()], g.names[u.GetNamespace()] = true, true
		if sizes < 2*MaxFileBytes {
			kept := Keep(u.Object)
			g.objects[kind.Kind] = append(g.objects[kind.Kind], kept)
			raw, _ := json.Marshal(kept)
			sizes += len(raw)
			return nil
		}

		g.objects[kind.Kind] = append(g.objects[kind.Kind], nil) // counted
		return nil
	})
}

// addObjects adds the objects of a kind while there is room.
func (g *gathering) addObjects(kind string) {
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	count := 0
	for _, object := range g.objects[kind] {
		raw, err := json.Marshal(Show(object, g.redactor.Text))
		if object == nil || err != nil || b.Len()+len(raw) > MaxFileBytes-16 {
			continue
		}
		if count > 0 {
			b.WriteString(",\n")
		}
		b.Write(raw)
		count++
	}

	b.WriteString("]}\n")
	total := len(g.objects[kind])
	if count < total {
		g.archive.Lack(kind, fmt.Sprintf("%d of %d are in the archive", count, total))
	}
	g.archive.Add("objects/"+strings.ToLower(kind)+".json", terminal.Count(count, "object"), b.Bytes())
}

// addVersions adds the versions of the plugin and the API server.
func (g *gathering) addVersions() {
	versions := map[string]string{"plugin": version.Get(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
	if clients, err := kubernetes.NewForConfig(g.Config); err == nil {
		if server, err := clients.Discovery().ServerVersion(); err == nil {
			versions["kubernetes"] = server.GitVersion
		}
	}
	raw, _ := json.MarshalIndent(versions, "", "  ")
	g.archive.Add("versions.json", "versions of the plugin and of Kubernetes", append(raw, '\n'))
}

// addExplanations adds the output of explain for packages that are not available. Packages that
// need help come first.
func (g *gathering) addExplanations(ctx context.Context, found []corev1alpha1.GenericPackage) {
	stateOf := func(pkg corev1alpha1.GenericPackage) summary.Summary {
		return progress.Of(progress.Snapshot{Target: progress.TargetOf(pkg), Package: pkg}).Summary()
	}
	found = slices.DeleteFunc(found, func(pkg corev1alpha1.GenericPackage) bool { return stateOf(pkg) == summary.Available })
	slices.SortStableFunc(found, func(a, b corev1alpha1.GenericPackage) int { return stateOf(a).Urgency() - stateOf(b).Urgency() })
	if len(found) > supportExplained {
		g.archive.Lack("explanations", fmt.Sprintf("%[2]d of %[1]d packages that are not available are explained", len(found), supportExplained))
		found = found[:supportExplained]
	}

	for _, pkg := range found {
		target := progress.TargetOf(pkg)
		d, err := diagnose.Package(ctx, g.Cluster, target, pkg)
		if err != nil {
			g.archive.Lack(target.String(), g.redactor.Text(err.Error()))
			continue
		}
		name := strings.Join(slices.DeleteFunc([]string{strings.ToLower(target.Kind()), target.Namespace, target.Name}, func(s string) bool { return s == "" }), "_")
		text := g.redactor.Text(d.Text(target.String(), terminal.Plain()))
		g.archive.Add("explain/"+name+".txt", "why "+target.String()+" is not available", []byte(text))
	}
}

// addLogs adds the ends of the logs of the manager's containers, including logs from before their
// last restart.
func (g *gathering) addLogs(ctx context.Context) {
	var pods corev1.PodList
	ofManager := client.MatchingLabels{"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/component": "manager"}
	if err := g.all.List(ctx, &pods, client.InNamespace(g.manager), ofManager); err != nil {
		g.archive.Lack("logs", err.Error())
		return
	}
	if len(pods.Items) == 0 {
		g.archive.Lack("logs", "namespace "+g.manager+" has no pod of the manager. If it is in another: --manager-namespace")
		return
	}

	clients, err := kubernetes.NewForConfig(g.Config)
	if err != nil {
		g.archive.Lack("logs", err.Error())
		return
	}

	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			g.addLog(ctx, clients, &pod, container.Name, false)
			if container.RestartCount > 0 {
				g.addLog(ctx, clients, &pod, container.Name, true)
			}
		}
	}
}

// addLog adds the end of the log of a container.
func (g *gathering) addLog(ctx context.Context, clients kubernetes.Interface, pod *corev1.Pod, container string, previous bool) {
	name := "logs/" + pod.Name + "_" + container
	about := "the end of the log"
	if previous {
		name, about = name+"_previous", "the end of the log before the last restart"
	}
	lines := int64(supportLogLines)
	stream, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines, Timestamps: true}).Stream(ctx)
	if err != nil {
		g.archive.Lack(name, err.Error())
		return
	}

	defer func() { _ = stream.Close() }()
	text, cut, err := End(stream)
	if err != nil {
		g.archive.Lack(name, err.Error())
		return
	}
	if cut {
		g.archive.Lack(name, fmt.Sprintf("the last %d bytes of it are in the archive", len(text)))
	}
	g.archive.Add(name+".log", about, []byte(g.redactor.Text(string(text))))
}
