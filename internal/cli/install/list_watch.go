package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// watchable says what contradicts --watch.
func (c *listCommand) watchable() error {
	switch {
	case c.Archive != "":
		return errors.New("--bundle reads a file, in which nothing changes: leave --watch out")
	case c.Output.Wanted() && !c.Output.Is("json"):
		return errors.New("--watch prints lines of text, or of JSON with -o json")
	}
	return nil
}

// listWatch prints the rows of list, and then those that change.
type listWatch struct {
	*listCommand
	cluster *cluster.Cluster

	mu sync.Mutex
	// shown are the rows by package, also those that the flags leave out.
	shown   map[progress.Target]installedPackage
	printed map[progress.Target]bool
	widths  []int
	// complete: the list was printed.
	complete bool
	lost     map[corev1alpha1.Scope]bool
	failed   chan error
}

func newListWatch(c *listCommand, cl *cluster.Cluster) *listWatch {
	return &listWatch{
		listCommand: c, cluster: cl, shown: map[progress.Target]installedPackage{}, printed: map[progress.Target]bool{}, lost: map[corev1alpha1.Scope]bool{},
		failed: make(chan error, 2),
	}
}

func (w *listWatch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var synced []cache.InformerSynced
	if !w.listCommand.cluster {
		synced = append(synced, w.follow(ctx, corev1alpha1.ScopeNamespaced, command.ListNamespace(w.cluster, w.everywhere)))
	}
	synced = append(synced, w.follow(ctx, corev1alpha1.ScopeCluster, ""))
	listed := make(chan struct{})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			close(listed)
		}
	}()
	select {
	case <-listed:
	case err := <-w.failed:
		return err
	case <-ctx.Done():
		return nil
	}
	w.mu.Lock()
	w.list()
	w.mu.Unlock()
	select {
	case err := <-w.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// follow watches the packages of a scope.
func (w *listWatch) follow(ctx context.Context, scope corev1alpha1.Scope, namespace string) cache.InformerSynced {
	return w.cluster.Inform(ctx, cluster.Watched{
		Example: scope.NewPackage(), List: scope.NewPackageList().(client.ObjectList),
		Options: func() client.ListOptions { return client.ListOptions{Namespace: namespace} },
		Report:  func(err error) { w.report(scope, err) },
		Transform: func(obj any) (any, error) {
			if pkg, is := obj.(corev1alpha1.GenericPackage); is {
				pkg.SetManagedFields(nil)
			}
			return obj, nil
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { w.change(obj, false) }, UpdateFunc: func(_, obj any) { w.change(obj, false) }, DeleteFunc: func(obj any) { w.change(obj, true) },
		},
	}).HasSynced
}

// report ends the command where the kind may not be watched, and says once that the connection is lost.
func (w *listWatch) report(scope corev1alpha1.Scope, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		err = nil // it is listed again
	}
	was := w.lost[scope]
	w.lost[scope] = err != nil
	switch {
	case err == nil || was:
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || cluster.Unserved(err):
		hint := ""
		if scope == corev1alpha1.ScopeNamespaced && w.everywhere {
			hint = ". Choose a namespace with -n"
		}
		select {
		case w.failed <- fmt.Errorf("%w%s", w.cluster.Explain("cannot watch the "+strings.ToLower(scope.Kind("Package"))+"s", err), hint):
		default:
		}
	default:
		fmt.Fprintln(w.Streams.ErrOut, terminal.Text(w.cluster.Explain("Warning: the connection is lost, and tried again", err).Error()))
	}
}

func (w *listWatch) change(obj any, deleted bool) {
	if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = unknown.Obj
	}
	pkg, is := obj.(corev1alpha1.GenericPackage)
	if !is {
		return
	}
	row := installedOne(pkg)
	row.Deleted = deleted
	w.mu.Lock()
	defer w.mu.Unlock()
	t := progress.TargetOf(pkg)
	before, known := w.shown[t]
	if w.shown[t] = row; deleted {
		delete(w.shown, t)
	}
	if !w.complete || known && before == row || !w.wanted(t, row) {
		return
	}
	w.print(t, row)
}

// wanted reports whether the flags select a row; one that was printed is, once it is available or gone.
func (w *listWatch) wanted(t progress.Target, row installedPackage) bool {
	return !w.notReady || row.State != progress.SummaryAvailable || w.printed[t]
}

// list prints all rows, those that need help first.
func (w *listWatch) list() {
	w.complete = true
	type entry struct {
		progress.Target
		installedPackage
	}
	var all []entry
	for t, row := range w.shown {
		if w.wanted(t, row) {
			all = append(all, entry{t, row})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.State.Urgency(), b.State.Urgency()), cmp.Compare(a.Target.Namespace, b.Target.Namespace), cmp.Compare(a.Target.Name, b.Target.Name))
	})
	rows := make([]installedPackage, 0, len(all))
	for _, e := range all {
		rows = append(rows, e.installedPackage)
	}
	table := listTable(rows, time.Now())
	w.widths = make([]int, len(table[0]))
	for _, cells := range table {
		for i, cell := range cells {
			w.widths[i] = max(w.widths[i], utf8.RuneCountInString(cell))
		}
	}
	if !w.Output.Wanted() {
		w.line(table[0])
	}
	for _, e := range all {
		w.print(e.Target, e.installedPackage)
	}
}

func (w *listWatch) print(t progress.Target, row installedPackage) {
	w.printed[t] = row.State != progress.SummaryAvailable && !row.Deleted
	if w.Output.Wanted() {
		raw, err := json.Marshal(row)
		if err == nil {
			_, err = w.Streams.Out.Write(append(raw, '\n'))
		}
		if err != nil {
			select {
			case w.failed <- err:
			default:
			}
		}
		return
	}
	cells := listTable([]installedPackage{row}, time.Now())[1]
	if row.Deleted {
		cells[4], cells[7] = "deleted", ""
	}
	w.line(cells)
}

// line prints cells below those of the list.
func (w *listWatch) line(cells []string) {
	padded := make([]string, len(cells))
	for i, cell := range cells {
		padded[i] = terminal.Pad(cell, w.widths[i])
	}
	fmt.Fprintln(w.Streams.Out, strings.TrimRight(strings.Join(padded, "  "), " "))
}
