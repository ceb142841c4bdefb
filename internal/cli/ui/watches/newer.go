package watches

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/ui/page"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
)

// Catalogue compares installed packages with the offers of repositories. It reads the
// offers of installed packages where a page of them is loaded, at most once in
// limits.PageCatalogueAge.
type Catalogue struct {
	ctx     context.Context
	cluster *cluster.Cluster
	board   *Board
	topic   topic

	mu      sync.Mutex
	shown   page.Catalogue
	begun   time.Time
	running chan struct{}
}

// NewCatalogue returns one that has compared nothing yet.
func NewCatalogue(ctx context.Context, cl *cluster.Cluster, board *Board) *Catalogue {
	return &Catalogue{ctx: ctx, cluster: cl, board: board}
}

// Subscribe returns a channel that is sent to after a comparison, and its end.
func (c *Catalogue) Subscribe() (<-chan struct{}, func()) { return c.topic.subscribe() }

// Shown is the last comparison, and the repositories as they are now.
func (c *Catalogue) Shown() page.Catalogue {
	c.mu.Lock()
	shown := c.shown
	c.mu.Unlock()
	for _, r := range c.board.Repositories() {
		shown.Repositories = append(shown.Repositories, repositoryOf(r))
	}
	return shown
}

// Refresh repeats a comparison that was made some time ago, and waits for the result for so long.
func (c *Catalogue) Refresh(ctx context.Context, patience time.Duration) {
	c.mu.Lock()
	if c.cluster.Archive != nil {
		c.shown.Note = "an archive does not have what repositories offer"
	} else if c.running == nil && time.Since(c.begun) >= limits.PageCatalogueAge {
		c.begun, c.running = time.Now(), make(chan struct{})
		go c.compare(c.running)
	}
	running := c.running
	c.mu.Unlock()
	if running == nil {
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-running:
	case <-late.C:
	case <-ctx.Done():
	}
}

func (c *Catalogue) compare(done chan struct{}) {
	ctx, cancel := context.WithTimeout(c.ctx, limits.PageCatalogueTime)
	defer cancel()
	var rows []desired.Outdated
	var byImage int
	err := panics.Guard(ctx, "comparing with the catalogue", func() (err error) {
		rows, byImage, err = desired.OutdatedOf(ctx, c.cluster, c.board.Packages(), false)
		return err
	})
	found := page.Catalogue{ByImage: byImage, At: time.Now()}
	switch {
	case ctx.Err() != nil && c.ctx.Err() == nil:
		found.At, found.Note = time.Time{}, fmt.Sprintf("the offers were not read within %s. See: kubectl package outdated -A", limits.PageCatalogueTime)
	case err != nil:
		found.At, found.Note = time.Time{}, err.Error()
	}
	for _, r := range rows {
		t := progress.Target{Scope: corev1alpha1.ScopeOf(r.Namespace), Namespace: r.Namespace, Name: r.Name}
		found.Newer = append(found.Newer, page.Newer{
			Namespace: r.Namespace, Name: r.Name, Package: r.Package, Installed: r.Installed, Wanted: r.Wanted, Newest: r.Newest, Reason: r.Why,
			Path: page.PackagePath(t), Flags: t.Flags(),
		})
	}
	c.mu.Lock()
	c.shown, c.running = found, nil
	c.mu.Unlock()
	close(done)
	c.topic.publish()
}

func repositoryOf(r corev1alpha1.GenericPackageRepository) page.Repository {
	one := page.Repository{
		Namespace: r.GetNamespace(), Name: r.GetName(), Packages: r.RepositoryStatus().Packages, Versions: r.RepositoryStatus().Versions,
		Created: r.GetCreationTimestamp(), Flags: cluster.RepositoryFlags(r),
	}
	one.Source, one.Address = cluster.RepositorySource(&r.RepositorySpec().Source)
	one.State, one.Works = cluster.RepositoryState(r)
	for _, condition := range *r.StatusConditions() {
		bad := condition.Type == corev1alpha1.ConditionReady && condition.Status == "False" || condition.Type == corev1alpha1.ConditionConflicting && condition.Status == "True"
		if bad && condition.Message != "" {
			one.Problems = append(one.Problems, condition.Message)
		}
	}
	one.Problems = append(one.Problems, r.RepositoryStatus().Problems...)
	return one
}
