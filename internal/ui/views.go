package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/dryrun"
	"lockstep.run/lockstep/internal/cli/objectdiff"
	"lockstep.run/lockstep/internal/cli/planning"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/ui/page"
)

// list is the page of all packages.
func (s *server) list(r *http.Request) (view, error) {
	values := r.URL.Query()
	q := page.Query{Text: values.Get("q"), State: values.Get("state"), Namespace: values.Get("namespace")}
	q.Page, _ = strconv.Atoi(values.Get("page"))
	return view{
		draw:      func(f page.Frame) *page.Page { return page.ListOf(f, s.board.Rows(), q) },
		subscribe: s.board.Subscribe,
	}, nil
}

// causePatience is for how long a page waits for the cause; later it comes by the stream.
const causePatience = 2 * time.Second

// one is the page of one package.
func (s *server) one(r *http.Request) (view, error) {
	t := targetOf(r)
	pkg := s.board.Package(t)
	if pkg == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s, as far as you may read.", t))
	}
	detail, err := s.details.Open(t, pkg.GetUID())
	if err != nil {
		return view{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageReadTimeout)
	defer cancel()
	detail.Await(ctx, causePatience)
	if o, known := detail.Observed(); !known || o.State.Target.Name == "" {
		detail.Release()
		return view{}, errors.New(cmp.Or(o.Note, t.String()+" was not read in time: reload the page, or look at the API server: kubectl get --raw '/readyz?verbose'"))
	}
	return view{
		draw: func(f page.Frame) *page.Page {
			o, _ := detail.Observed()
			if o.Gone {
				return nil
			}
			return page.PackageOf(f, o, s.board.Graph())
		},
		subscribe: both(detail.Subscribe, s.board.Subscribe), release: detail.Release,
	}, nil
}

// both joins two subscriptions.
func both(a, b func() (<-chan struct{}, func())) func() (<-chan struct{}, func()) {
	return func() (<-chan struct{}, func()) {
		joined, stop := make(chan struct{}, 1), make(chan struct{})
		first, endFirst := a()
		second, endSecond := b()
		go func() {
			for {
				select {
				case <-first:
				case <-second:
				case <-stop:
					return
				}
				select {
				case joined <- struct{}{}:
				default:
				}
			}
		}()
		return joined, func() {
			close(stop)
			endFirst()
			endSecond()
		}
	}
}

// diff compares two revisions of a package.
func (s *server) diff(r *http.Request) (view, error) {
	t := targetOf(r)
	if s.board.Package(t) == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s, as far as you may read.", t))
	}
	of := *s.cluster
	of.Namespace = t.Namespace
	rollout, err := of.Rollout(r.Context(), cluster.Name{Scope: t.Scope, Name: t.Name})
	if err != nil {
		return view{}, err
	}
	var revisions [2]corev1alpha1.GenericObjectSet
	var objects [2][]objectdiff.Object
	for i, name := range []string{"from", "to"} {
		number, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
		if err != nil {
			return view{}, notFound("The address names no two revisions, as ?from=1&to=2.")
		}
		if revisions[i], err = rollout.Revision(number); err != nil {
			return view{}, notFound(err.Error())
		}
		if objects[i], err = of.ComparableObjects(r.Context(), revisions[i]); err != nil {
			return view{}, err
		}
	}
	c := cluster.Compare(revisions[0], revisions[1], objects[0], objects[1])
	return view{draw: func(f page.Frame) *page.Page { return page.DiffOf(f, t, c) }}, nil
}

// plan is what a version or a revision of a package would do.
func (s *server) plan(r *http.Request) (view, error) {
	t, values := targetOf(r), r.URL.Query()
	pkg := s.board.Package(t)
	if pkg == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s, as far as you may read.", t))
	}
	select {
	case s.plans <- struct{}{}:
		defer func() { <-s.plans }()
	case <-r.Context().Done():
		return view{}, fmt.Errorf("%d plans are being made already: reload this page in a moment", pagePlans)
	}
	of := *s.cluster
	of.Namespace = t.Namespace
	n := cluster.Name{Scope: t.Scope, Name: t.Name}
	shown := page.Plan{Target: t, What: "version " + values.Get("version"), Command: "kubectl package plan " + t.Flags() + " --version " + values.Get("version"), Generation: pkg.GetGeneration()}
	var made *dryrun.Plan
	var err error
	if number, parseErr := strconv.ParseInt(values.Get("revision"), 10, 64); parseErr == nil {
		shown.What, shown.Command = fmt.Sprintf("revision %d", number), fmt.Sprintf("kubectl package plan %s --revision %d", t.Flags(), number)
		made, shown.Revision, err = planOfRevision(r.Context(), &of, n, number)
	} else if _, invalid := semver.StrictNewVersion(values.Get("version")); invalid != nil {
		return view{}, notFound("The address names neither a version nor a revision, as ?version=1.2.3.")
	} else if made, err = planning.OfVersion(r.Context(), s.quiet, &of, n, values.Get("version")); err == nil {
		shown.Version, shown.Digest = made.To.Version, made.To.Digest
	}
	if err != nil {
		return view{}, of.Explain("cannot plan "+t.String(), err)
	}
	shown.Text, shown.Feasible = planning.Text(made, terminal.Plain()), made.Outcome == dryrun.OutcomeChanges
	return view{draw: func(f page.Frame) *page.Page { return page.PlanOf(f, shown) }}, nil
}

func planOfRevision(ctx context.Context, cl *cluster.Cluster, n cluster.Name, number int64) (*dryrun.Plan, *page.Revision, error) {
	rollout, err := cl.Rollout(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	set, err := rollout.Revision(number)
	if err != nil {
		return nil, nil, notFound(err.Error())
	}
	made, err := planning.OfRevision(ctx, cl, rollout, set, set.GetAnnotations()[corev1alpha1.PackageSourceImageAnnotation])
	awaiting := set.GetName() == rollout.Deployment.ObjectDeploymentStatus().WaitingRevision
	return made, &page.Revision{Number: number, UID: string(set.GetUID()), Awaiting: awaiting}, err
}

// graph is the drawing around one package, or of namespaces.
func (s *server) graph(r *http.Request) (view, error) {
	around := r.URL.Query().Get("package")
	return view{
		draw:      func(f page.Frame) *page.Page { return page.GraphOf(f, s.board.Graph(), around) },
		subscribe: s.board.Subscribe,
	}, nil
}

// catalogue is the page of what is offered, of packages that are not at their newest version, and of repositories.
func (s *server) catalogue(r *http.Request) (view, error) {
	s.offers.Refresh(r.Context(), causePatience)
	q := page.CatalogueQueryOf(r.URL.Query())
	return view{
		draw:      func(f page.Frame) *page.Page { return page.CatalogueOf(f, s.offers.Shown(), s.board.Rows(), q) },
		subscribe: both(s.board.Subscribe, s.offers.Subscribe),
	}, nil
}

// offer is the page of one package that is offered, with its versions.
func (s *server) offer(r *http.Request) (view, error) {
	q := page.OfferQueryOf(r.URL.Query())
	if q.Name == "" {
		return view{}, notFound("The address names no package, as ?name=shop.example.com.")
	}
	if q.Namespace != "" && len(validation.IsDNS1123Label(q.Namespace)) > 0 {
		return view{}, notFound("The address has a namespace that none can be called, other than in ?namespace=shop.") // commands of the page have it
	}
	o, err := s.offers.Offered(r.Context(), q)
	if err != nil {
		return view{}, err
	}
	return view{draw: func(f page.Frame) *page.Page { return page.OfferedOf(f, o, s.board.Rows(), s.offers.Shown().Newer, q) }}, nil
}
