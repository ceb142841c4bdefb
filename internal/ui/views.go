package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/cluster"
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

// causePatience limits how long a page waits for the cause. Later, the cause is sent by the stream.
const causePatience = 2 * time.Second

// one is the page of one package.
func (s *server) one(r *http.Request) (view, error) {
	t := targetOf(r)
	pkg := s.board.Package(t)
	if pkg == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s that you may read.", t))
	}
	detail := s.details.Open(r.Context(), t, pkg.GetUID())
	ctx, cancel := context.WithTimeout(r.Context(), pageReadTimeout)
	defer cancel()
	detail.Await(ctx, causePatience)
	if o, known := detail.Observed(); !known || o.State.Target.Name == "" {
		return view{}, errors.New(cmp.Or(o.Note, t.String()+" was not read in time: reload the page, or check the API server: kubectl get --raw '/readyz?verbose'"))
	}

	icon := s.icon(ctx, pkg)
	return view{
		draw: func(f page.Frame) *page.Page {
			o, _ := detail.Observed()
			if o.Gone {
				return nil
			}
			o.Icon = icon
			return page.PackageOf(f, o)
		},
		subscribe: detail.Subscribe,
	}, nil
}

// icon returns the icon of a package in the catalogue, if the user can read it.
func (s *server) icon(ctx context.Context, pkg corev1alpha1.GenericPackage) template.URL {
	resolved := pkg.PackageStatus().Resolved
	// A package that was never resolved is not in the catalogue under a known name.
	if resolved == nil {
		return ""
	}
	_, display, err := s.cluster.Catalogue(pkg.GetNamespace()).Of(ctx, cmp.Or(resolved.CatalogName, resolved.PackageName))
	if err != nil || display == nil {
		return ""
	}
	return page.Icon(display.IconSVG)
}

// diff compares two revisions of a package.
func (s *server) diff(r *http.Request) (view, error) {
	t := targetOf(r)
	if s.board.Package(t) == nil {
		return view{}, notFound(fmt.Sprintf("There is no %s that you may read.", t))
	}
	// The copy has the namespace of the package, while other requests use their own.
	of := *s.cluster
	of.Namespace = t.Namespace
	rollout, err := of.Rollout(r.Context(), cluster.Name{Scope: t.Scope, Name: t.Name})
	if err != nil {
		return view{}, err
	}

	var revisions [2]corev1alpha1.GenericObjectSet
	for i, name := range []string{"from", "to"} {
		number, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
		if err != nil {
			return view{}, notFound("The address does not name two revisions, as in ?from=1&to=2.")
		}
		if revisions[i], err = rollout.Revision(number); err != nil {
			return view{}, notFound(err.Error())
		}
	}

	c, err := of.Compare(r.Context(), revisions[0], revisions[1])
	return view{draw: func(f page.Frame) *page.Page { return page.DiffOf(f, t, c) }}, err
}
