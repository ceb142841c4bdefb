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
	"lockstep.run/lockstep/internal/kube/panics"
)

// watchable says what contradicts --watch.
func (c *listCommand) watchable() error {
	if c.Output.Wanted() && !c.Output.Is("json") {
		return errors.New("--watch prints lines of text, or of JSON with -o json")
	}
	return nil
}

// listWatch prints the rows of list, and then those that change.
type listWatch struct {
	*listCommand
	cluster *cluster.Cluster

	mu sync.Mutex
	// rows are the latest ones by package, also those that the flags leave out. A package that is gone stays until that is printed.
	rows map[progress.Target]installedPackage
	// changed are the packages that may have to be printed, of which wake tells the printer: it takes the latest row of each,
	// so that a reader that is slow costs no memory.
	changed map[progress.Target]bool
	wake    chan struct{}
	// listed are the packages whose rows were printed, if they are not gone.
	listed map[progress.Target]installedPackage
	widths []int
	lost   map[corev1alpha1.Scope]bool
	failed chan error
}

func newListWatch(c *listCommand, cl *cluster.Cluster) *listWatch {
	return &listWatch{
		listCommand: c, cluster: cl, rows: map[progress.Target]installedPackage{}, changed: map[progress.Target]bool{}, wake: make(chan struct{}, 1),
		listed: map[progress.Target]installedPackage{}, lost: map[corev1alpha1.Scope]bool{}, failed: make(chan error, 1),
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
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			w.fail(panics.Guard(ctx, "printing the list", func() error { return w.printAll(ctx) }))
		}
	}()
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

// fail ends the command.
func (w *listWatch) fail(err error) {
	select {
	case w.failed <- err:
	default: // it ends already
	}
}

// report ends the command where the kind may not be watched, and says once that the connection is lost.
func (w *listWatch) report(scope corev1alpha1.Scope, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		err = nil // it is listed again
	}
	w.mu.Lock()
	was := w.lost[scope]
	w.lost[scope] = err != nil
	w.mu.Unlock()
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || cluster.Unserved(err):
		hint := ""
		if scope == corev1alpha1.ScopeNamespaced && w.everywhere {
			hint = ". Choose a namespace with -n"
		}
		w.fail(fmt.Errorf("%w%s", w.cluster.Explain("cannot watch the "+strings.ToLower(scope.Kind("Package"))+"s", err), hint))
	case !was:
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
	w.rows[t], w.changed[t] = row, true
	if _, listed := w.listed[t]; deleted && !listed {
		delete(w.rows, t)
		delete(w.changed, t)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// entry is a row to be printed.
type entry struct {
	progress.Target
	installedPackage
}

// take returns what is to be printed of the packages that have changed, those that need help first.
func (w *listWatch) take() (all []entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range w.changed {
		row := w.rows[t]
		before, listed := w.listed[t]
		// One that was printed is printed once it is available, or gone.
		wanted := !w.notReady || row.State != progress.SummaryAvailable || listed && before.State != progress.SummaryAvailable
		if wanted && before != row {
			all = append(all, entry{t, row})
			w.listed[t] = row
		}
		if row.Deleted {
			delete(w.rows, t)
			delete(w.listed, t)
		}
	}
	clear(w.changed)
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.State.Urgency(), b.State.Urgency()), cmp.Compare(a.Target.Namespace, b.Target.Namespace), cmp.Compare(a.Target.Name, b.Target.Name))
	})
	return all
}

// printAll prints the list, and then what changes, until ctx ends.
func (w *listWatch) printAll(ctx context.Context) error {
	all := w.take()
	if err := w.head(all); err != nil {
		return err
	}
	for {
		for _, e := range all {
			if err := w.print(e.installedPackage); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			all = w.take()
		}
	}
}

// head makes the columns as wide as those of the list are, and prints the names of these.
func (w *listWatch) head(all []entry) error {
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
	if w.Output.Wanted() {
		return nil
	}
	return w.line(table[0])
}

func (w *listWatch) print(row installedPackage) error {
	if w.Output.Wanted() {
		raw, err := json.Marshal(row)
		if err == nil {
			_, err = w.Streams.Out.Write(append(raw, '\n'))
		}
		return err
	}
	cells := listTable([]installedPackage{row}, time.Now())[1]
	if row.Deleted {
		cells[4], cells[7] = "deleted", ""
	}
	return w.line(cells)
}

// line prints cells below those of the list.
func (w *listWatch) line(cells []string) error {
	padded := make([]string, len(cells))
	for i, cell := range cells {
		padded[i] = terminal.Pad(cell, w.widths[i])
	}
	_, err := fmt.Fprintln(w.Streams.Out, strings.TrimRight(strings.Join(padded, "  "), " "))
	return err
}
