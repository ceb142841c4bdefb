package watches

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/offers"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/catalog/versions"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/ui/page"
)

// MaxOffers limits the packages that are offered: some 30 MiB, and seconds to read.
const MaxOffers = 20_000

const (
	pageOffersIn   = 5_000 // of one namespace; fewer where others need room
	pageOffersRead = 20    // AvailablePackages in one response: 10 MiB
)

// browse reads which packages are offered. Of each version nothing is kept, so that catalogues may be larger than the memory.
func (c *Catalogue) browse() page.Offers {
	ctx, cancel := context.WithTimeout(c.ctx, pageCatalogueTime)
	defer cancel()
	b := &browser{found: map[[2]string]*page.Offer{}, of: map[string][][2]string{}, share: pageOffersIn, platform: desired.ChooserFor(c.cluster, "").Platform(ctx)}
	var problems []string
	err := panics.Guard(ctx, "reading the catalogue", func() error {
		for _, scope := range []corev1alpha1.Scope{corev1alpha1.ScopeCluster, corev1alpha1.ScopeNamespaced} {
			err := c.cluster.EachAvailable(ctx, scope, "", pageOffersRead, b.add)
			if apierrors.IsForbidden(err) && scope == corev1alpha1.ScopeNamespaced {
				problems = append(problems, fmt.Sprintf("you may not read those of all namespaces; those of namespace %s alone are shown.", c.cluster.Namespace))
				err = c.cluster.EachAvailable(ctx, scope, c.cluster.Namespace, pageOffersRead, b.add)
			}
			if apierrors.IsForbidden(err) {
				problems = append(problems, fmt.Sprintf("you may not read the %ss.", scope.Kind("AvailablePackage")))
				err = nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if b.more {
		problems = append(problems, fmt.Sprintf("there are more than %d, or more than %d of one namespace. See: kubectl package available list -A", MaxOffers, b.share))
	}
	if text := c.why(ctx, err, "kubectl package available list -A"); text != "" {
		problems = append(problems, text)
	}
	return page.OffersFrom(b.found, strings.Join(problems, "\n"))
}

// browser gathers offers from their objects.
type browser struct {
	found    map[[2]string]*page.Offer
	platform *versions.Platform
	// of are the packages of each namespace, of which share are kept: one that offers very much leaves room for others.
	of    map[string][][2]string
	share int
	more  bool
}

// isFull reports whether there is no room for another package, also not where each namespace has less.
func (b *browser) isFull() bool {
	for ; len(b.found) >= MaxOffers && b.share > 1; b.more = true {
		b.share /= 2
		for namespace, all := range b.of {
			if len(all) > b.share {
				for _, key := range all[b.share:] {
					delete(b.found, key)
				}
				b.of[namespace] = all[:b.share]
			}
		}
	}
	return len(b.found) >= MaxOffers
}

// add reports whether more are wanted.
func (b *browser) add(a corev1alpha1.GenericAvailablePackage) bool {
	spec, key := a.AvailableSpec(), [2]string{a.GetNamespace(), a.AvailableSpec().PackageName}
	if a.GetName() != repository.ObjectName(spec.PackageName, spec.Part) {
		return true // nothing installs it: the controller did not write this
	}
	o := b.found[key]
	if o == nil {
		full := len(b.of[key[0]]) < b.share && b.isFull()
		if full || len(b.of[key[0]]) >= b.share {
			b.more = true
			return !full
		}
		if key[0] != "" {
			b.of[key[0]] = append(b.of[key[0]], key)
		}
		o = page.OfferOf(key[0], spec)
		b.found[key] = o
	}
	if spec.Display != nil {
		o.Describe(spec.Display)
	}
	// The highest that can be installed is that of the highest of each part.
	request := versions.Request{}
	candidates := []versions.Candidate{{Version: o.Newest}}
	for i, v := range spec.Versions {
		if i == 0 || v.Version != spec.Versions[i-1].Version {
			o.Versions++
		}
		candidate := offers.Offered{Version: v}.Candidate()
		if b.platform == nil {
			candidate.Constraints = nil
		}
		candidates = append(candidates, candidate)
		o.From(v.Repository)
	}
	if b.platform != nil {
		request.Platform = *b.platform
	}
	if chosen := versions.Select(candidates, request); chosen.Index >= 0 {
		o.Newest = strings.Clone(candidates[chosen.Index].Version)
	}
	return true
}
