package watches

import (
	"context"
	"fmt"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/ui/page"
)

const pageCatalogueTime = 20 * time.Second // of a comparison with the catalogue

// Catalogue has what repositories offer, and compares installed packages with it. It reads where a page of it is loaded, at
// most once in pageCatalogueAge.
type Catalogue struct {
	ctx     context.Context
	cluster *cluster.Cluster
	board   *Board
	topic   topic
	newer   reading[compared]
	offers  reading[page.Offers]

	// one has the versions of the package that was opened last; it is taken by who reads.
	one chan *versionsOf
}

// compared is a comparison of the installed packages.
type compared struct {
	newer   []page.Newer
	byImage int
	at      time.Time
	note    string
}

// NewCatalogue returns one that has read nothing yet.
func NewCatalogue(ctx context.Context, cl *cluster.Cluster, board *Board) *Catalogue {
	c := &Catalogue{ctx: ctx, cluster: cl, board: board, one: make(chan *versionsOf, 1)}
	c.one <- &versionsOf{}
	return c
}

// Subscribe returns a channel that is sent to after something was read, and its end.
func (c *Catalogue) Subscribe() (<-chan struct{}, func()) { return c.topic.subscribe() }

// Shown are the results of the last read, and the present repositories.
func (c *Catalogue) Shown() page.Catalogue {
	newer := c.newer.last()
	shown := page.Catalogue{Newer: newer.newer, ByImage: newer.byImage, At: newer.at, Note: newer.note, Offers: c.offers.last()}
	for _, r := range c.board.Repositories() {
		shown.Repositories = append(shown.Repositories, repositoryOf(r))
	}
	return shown
}

// Refresh repeats a read that is old, and waits for the result for so long.
func (c *Catalogue) Refresh(ctx context.Context, patience time.Duration) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, running := range []<-chan struct{}{c.newer.refresh(&c.topic, c.compare), c.offers.refresh(&c.topic, c.browse)} {
		if running == nil {
			continue
		}
		select {
		case <-running:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *Catalogue) compare() compared {
	ctx, cancel := context.WithTimeout(c.ctx, pageCatalogueTime)
	defer cancel()
	var rows []desired.Outdated
	var byImage int
	err := panics.Guard(ctx, "comparing with the catalogue", func() (err error) {
		rows, byImage, err = desired.OutdatedOf(ctx, c.cluster, c.board.Packages(), false)
		return err
	})
	found := compared{byImage: byImage, at: time.Now()}
	if found.note = c.why(ctx, err, "kubectl package outdated -A"); found.note != "" {
		found.at = time.Time{}
	}
	for _, r := range rows {
		t := progress.Target{Scope: corev1alpha1.ScopeOf(r.Namespace), Namespace: r.Namespace, Name: r.Name}
		found.newer = append(found.newer, page.Newer{
			Namespace: r.Namespace, Name: r.Name, Package: r.Package, Installed: r.Installed, Wanted: r.Wanted, Newest: r.Newest, Reason: r.Why,
			Path: page.PackagePath(t), Flags: t.Flags(),
		})
	}
	return found
}

// why is why something was not read; empty where it was.
func (c *Catalogue) why(ctx context.Context, err error, command string) string {
	switch {
	case ctx.Err() != nil && c.ctx.Err() == nil:
		return fmt.Sprintf("the offers were not read within %s. See: %s", pageCatalogueTime, command)
	case err != nil:
		return err.Error()
	}
	return ""
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
