package repository_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/test/properties"
	"lockstep.run/lockstep/test/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// offers is a repository that offers versions of shop.example.com with an image and a revision
// each: 1.0.0=A or 1.0.0=A@2.
func offers(name string, age int, priority int32, versions ...string) repository.Offer {
	p := repository.Package{Name: "shop.example.com", Display: &corev1alpha1.PackageDisplay{Name: "of " + name}}
	for _, text := range versions {
		version, content, _ := strings.Cut(text, "=")
		image, revision, _ := strings.Cut(content, "@")
		p.Versions = append(p.Versions, corev1alpha1.AvailableVersion{Version: version, Image: image, Revision: revision})
	}
	return repository.Offer{
		Repository: name, Priority: priority, Created: epoch.Add(-time.Duration(age) * time.Hour),
		Content: &repository.Content{Packages: []repository.Package{p}},
	}
}

// limited is an offer of a repository that some namespaces do not see.
func limited(o repository.Offer) repository.Offer {
	o.Limited = true
	return o
}

// owned are versions in the form 1.0.0=repository.
func owned(versions ...string) []corev1alpha1.AvailablePackageSpec {
	spec := corev1alpha1.AvailablePackageSpec{PackageName: "shop.example.com"}
	for _, text := range versions {
		version, repository, _ := strings.Cut(text, "=")
		spec.Versions = append(spec.Versions, corev1alpha1.AvailableVersion{Version: version, Repository: repository})
	}
	return []corev1alpha1.AvailablePackageSpec{spec}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason    string
		offers    []repository.Offer
		existing  []corev1alpha1.AvailablePackageSpec
		want      string // version=image of repository
		conflicts string // repositories with the versions
	}{
		{"one repository has all", []repository.Offer{offers("a", 0, 0, "1.0.0=A", "1.1.0=A")}, nil, "1.0.0=A of a, 1.1.0=A of a", ""},
		{"versions of several are merged in their order", []repository.Offer{offers("a", 0, 0, "1.10.0=A"), offers("b", 1, 0, "1.9.0=B", "1.10.0-rc.1=B")}, nil,
			"1.9.0=B of b, 1.10.0-rc.1=B of b, 1.10.0=A of a", ""},
		{"equal content: the oldest has it", []repository.Offer{offers("a", 1, 0, "1.0.0=A"), offers("b", 2, 0, "1.0.0=A")}, nil, "1.0.0=A of b", ""},
		{"equal content: the present owner keeps it", []repository.Offer{offers("a", 1, 0, "1.0.0=A"), offers("b", 2, 0, "1.0.0=A")}, owned("1.0.0=a"), "1.0.0=A of a", ""},
		{"equal content: priority takes nothing from the owner", []repository.Offer{offers("a", 1, 0, "1.0.0=A"), offers("b", 2, 9, "1.0.0=A")}, owned("1.0.0=a"), "1.0.0=A of a", ""},
		{"a higher revision takes over with any priority", []repository.Offer{offers("a", 2, 9, "1.0.0=A@2.0"), offers("b", 1, 0, "1.0.0=B@2.1.0")}, owned("1.0.0=a"), "1.0.0=B of b", ""},
		{"a higher revision takes over equal content", []repository.Offer{offers("a", 2, 0, "1.0.0=A@2.0"), offers("b", 1, 0, "1.0.0=A@2.1.0")}, owned("1.0.0=a"), "1.0.0=A of b", ""},
		{"a lower revision is not a conflict", []repository.Offer{offers("a", 2, 0, "1.0.0=A@2.0"), offers("b", 1, 0, "1.0.0=B@1.6.8")}, owned("1.0.0=a"), "1.0.0=A of a", ""},
		{"of two revisions the longer is higher", []repository.Offer{offers("a", 2, 0, "1.0.0=A@2"), offers("b", 1, 0, "1.0.0=B@2.0")}, owned("1.0.0=a"), "1.0.0=B of b", ""},
		{"an absent revision is the lowest", []repository.Offer{offers("a", 2, 0, "1.0.0=A"), offers("b", 1, 0, "1.0.0=B@0")}, owned("1.0.0=a"), "1.0.0=B of b", ""},
		{"priority decides between contents", []repository.Offer{offers("a", 2, 0, "1.0.0=A"), offers("b", 1, 1, "1.0.0=B")}, owned("1.0.0=a"), "1.0.0=B of b", ""},
		{"a conflict is one of its version alone", []repository.Offer{offers("a", 2, 0, "1.0.0=A", "1.1.0=A"), offers("b", 1, 0, "1.0.0=B", "1.1.0=A", "1.2.0=B")}, nil,
			"1.0.0=A of a, 1.1.0=A of a, 1.2.0=B of b", "b: shop.example.com 1.0.0"},
		{"in a conflict the present owner keeps it", []repository.Offer{offers("a", 2, 0, "1.0.0=A"), offers("b", 1, 0, "1.0.0=B")}, owned("1.0.0=b"), "1.0.0=B of b", "a: shop.example.com 1.0.0"},
		{"an owner that no longer offers it is ignored", []repository.Offer{offers("a", 2, 0, "1.0.0=A"), offers("b", 1, 0, "1.1.0=B")}, owned("1.0.0=b"), "1.0.0=A of a, 1.1.0=B of b", ""},
		{"the owner changes its own version", []repository.Offer{offers("a", 2, 0, "1.0.0=B")}, owned("1.0.0=a"), "1.0.0=B of a", ""},
		{"build metadata distinguishes versions", []repository.Offer{offers("a", 2, 0, "1.0.0+2=A"), offers("b", 1, 0, "1.0.0+10=B", "1.0.0=B")}, nil, "1.0.0=B of b, 1.0.0+2=A of a, 1.0.0+10=B of b", ""},
		{"a repository that was never fetched has no offers", []repository.Offer{{Repository: "a"}, offers("b", 1, 0, "1.0.0=B")}, nil, "1.0.0=B of b", ""},
		{"of three, the two that are above the third differ", []repository.Offer{offers("a", 3, 0, "1.0.0=A"), offers("b", 2, 5, "1.0.0=B"), offers("c", 1, 5, "1.0.0=C")}, owned("1.0.0=a"),
			"1.0.0=B of b", "c: shop.example.com 1.0.0"},
		{"an owner of low priority keeps the content that won", []repository.Offer{offers("a", 3, 0, "1.0.0=A"), offers("b", 2, 5, "1.0.0=A"), offers("c", 1, 3, "1.0.0=C")}, owned("1.0.0=a"), "1.0.0=A of a", ""},
		{"behind a limited one is the one for other namespaces", []repository.Offer{limited(offers("a", 1, 5, "1.0.0=A", "1.1.0=A")), offers("b", 2, 0, "1.0.0=B"), offers("c", 3, 0, "1.0.0=C")}, nil,
			"1.0.0=A of a, 1.0.0=C of c, 1.1.0=A of a", "b: shop.example.com 1.0.0"},
		{"also with equal content", []repository.Offer{limited(offers("a", 2, 0, "1.0.0=A")), limited(offers("b", 1, 0, "1.0.0=A")), offers("c", 0, 0, "1.0.0=A")}, nil,
			"1.0.0=A of a, 1.0.0=A of b, 1.0.0=A of c", ""},
		{"a conflict is reported once", []repository.Offer{limited(offers("a", 3, 0, "1.0.0=A")), limited(offers("b", 2, 0, "1.0.0=B")), offers("c", 1, 0, "1.0.0=C")}, nil,
			"1.0.0=A of a, 1.0.0=B of b, 1.0.0=C of c", "b: shop.example.com 1.0.0, c: shop.example.com 1.0.0"},
		{"no offer is behind one that all see", []repository.Offer{offers("a", 2, 1, "1.0.0=A"), limited(offers("b", 1, 0, "1.0.0=B"))}, nil, "1.0.0=A of a", ""},
	} {
		available, conflicts := repository.Merge(test.offers, test.existing)
		require.Equal(t, test.want, listed(available), test.reason)
		require.Equal(t, test.conflicts, conflicting(conflicts), fmt.Sprintf("%s: conflicts", test.reason))
	}
}

func listed(available []corev1alpha1.AvailablePackageSpec) string {
	var out []string
	for _, a := range available {
		for _, v := range a.Versions {
			out = append(out, v.Version+"="+v.Image+" of "+v.Repository)
		}
	}
	return strings.Join(out, ", ")
}

func conflicting(conflicts map[string][]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(conflicts)) {
		for _, text := range conflicts[name] {
			version, _, _ := strings.Cut(text, ": ")
			out = append(out, name+": "+version)
		}
	}
	return strings.Join(out, ", ")
}

func TestConflictText(t *testing.T) {
	t.Parallel()
	_, conflicts := repository.Merge([]repository.Offer{offers("a", 1, 0, "1.0.0=A"), offers("b", 0, 0, "1.0.0=B")}, nil)
	want := map[string][]string{"b": {`shop.example.com 1.0.0: the repository "a" offers it with another content, which is chosen, because revisions and priorities are equal: ` +
		`set spec.priority of one of the two, or withdraw the version from one`}}
	require.Equal(t, want, conflicts)
}

// A package has the description of the repository with its highest version.
func TestMergedDisplay(t *testing.T) {
	t.Parallel()
	available, _ := repository.Merge([]repository.Offer{offers("a", 1, 0, "1.0.0=A"), offers("b", 0, 0, "1.1.0=B")}, nil)
	require.Equal(t, "of b", available[0].Display.Name)
}

func drawOffers(t *rapid.T) []repository.Offer {
	var out []repository.Offer
	for i := range rapid.IntRange(1, 4).Draw(t, "repositories") {
		var versions []string
		for _, v := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"1.0.0", "1.0.0+b", "1.1.0-rc.1", "1.10.0", "1.9.0"}), rapid.ID).Draw(t, "versions") {
			versions = append(versions, v+"="+rapid.SampledFrom([]string{"A", "B", "A@1", "B@1", "A@1.0", "C@2"}).Draw(t, "content"))
		}
		out = append(out, offers(string(rune('a'+i)), rapid.IntRange(0, 2).Draw(t, "age"), rapid.Int32Range(0, 1).Draw(t, "priority"), versions...))
	}
	return out
}

func drawOwners(t *rapid.T) []corev1alpha1.AvailablePackageSpec {
	var out []string
	for _, v := range []string{"1.0.0", "1.0.0+b", "1.1.0-rc.1", "1.10.0", "1.9.0"} {
		out = append(out, v+"="+rapid.SampledFrom([]string{"a", "b", "c", "d", "gone"}).Draw(t, "owner"))
	}
	return owned(out...)
}

func drawLimited(t *rapid.T) []repository.Offer {
	all := drawOffers(t)
	for i := range all {
		all[i].Limited = rapid.Bool().Draw(t, "limited")
	}
	return all
}

// Regardless of the repositories that a namespace does not see, each version that another one
// offers is offered, once by each.
func TestMergeForAllNamespaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, hidden := drawLimited(t), map[string]bool{}
		available, _ := repository.Merge(all, drawOwners(t))
		for i := range all {
			hidden[all[i].Repository] = all[i].Limited && rapid.Bool().Draw(t, "hidden")
		}
		seen, offered := map[string]bool{}, map[string]bool{}
		for _, a := range available {
			for _, v := range a.Versions {
				if seen[v.Version+v.Repository] {
					t.Fatalf("%s of %s is there twice", v.Version, v.Repository)
				}
				seen[v.Version+v.Repository] = true
				offered[v.Version] = offered[v.Version] || !hidden[v.Repository]
			}
		}
		for _, o := range all {
			for _, v := range o.Content.Packages[0].Versions {
				if !hidden[o.Repository] && !offered[v.Version] {
					t.Fatalf("%s of %s is hidden by %s", v.Version, o.Repository, listed(available))
				}
			}
		}
	})
}

// The order of repositories does not matter, and a second merge does not change anything.
func TestMergeIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, existing := drawLimited(t), drawOwners(t)
		available, conflicts := repository.Merge(all, existing)
		again, conflictsAgain := repository.Merge(rapid.Permutation(all).Draw(t, "order"), existing)
		if diff := gocmp.Diff(available, again) + gocmp.Diff(conflicts, conflictsAgain); diff != "" {
			t.Fatalf("in another order: %s", diff)
		}
		again, conflictsAgain = repository.Merge(all, available)
		if diff := gocmp.Diff(available, again) + gocmp.Diff(conflicts, conflictsAgain); diff != "" {
			t.Fatalf("merged again: %s", diff)
		}
	})
}

// Every version that a repository offers is offered by a repository with the highest revision and,
// if contents differ, the highest priority.
func TestMergeTakesTheBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all, existing := drawOffers(t), drawOwners(t)
		available, conflicts := repository.Merge(all, existing)
		type claim struct {
			offer   repository.Offer
			version corev1alpha1.AvailableVersion
		}
		claims := map[string][]claim{}
		for _, o := range all {
			for _, v := range o.Content.Packages[0].Versions {
				claims[v.Version] = append(claims[v.Version], claim{o, v})
			}
		}
		for _, a := range available {
			for _, got := range a.Versions {
				var best []claim
				for _, c := range claims[got.Version] {
					if repository.CompareRevisions(c.version.Revision, got.Revision) > 0 {
						t.Fatalf("%s has the revision %q in %s, and not %q", got.Version, c.version.Revision, c.offer.Repository, got.Revision)
					}
					if repository.CompareRevisions(c.version.Revision, got.Revision) == 0 {
						best = append(best, c)
					}
				}
				highest := slices.MaxFunc(best, func(a, b claim) int { return cmp.Compare(a.offer.Priority, b.offer.Priority) }).offer.Priority
				justified := false
				for _, c := range best {
					justified = justified || c.version.Image == got.Image && c.offer.Priority == highest
					lost := c.version.Image != got.Image && c.offer.Priority == highest
					reported := slices.ContainsFunc(conflicts[c.offer.Repository], func(text string) bool { return strings.HasPrefix(text, a.PackageName+" "+got.Version+": ") })
					if lost != reported {
						t.Fatalf("%s of %s lost: %v; reported: %v", got.Version, c.offer.Repository, lost, reported)
					}
				}
				if !justified {
					t.Fatalf("%s has the content %s, which no repository of priority %d has", got.Version, got.Image, highest)
				}
				delete(claims, got.Version)
			}
		}
		if len(claims) > 0 {
			t.Fatalf("not offered: %v", claims)
		}
	})
}

func sizedOffer(sizes []int) repository.Offer {
	o := offers("a", 0, 0)
	for i, size := range sizes {
		o.Content.Packages[0].Versions = append(o.Content.Packages[0].Versions, corev1alpha1.AvailableVersion{
			Version: fmt.Sprintf("1.%d.0", i), Release: &corev1alpha1.PackageRelease{Notes: strings.Repeat("x", size)},
		})
	}
	return o
}

// No part is too large. All versions are in them once and in order, and one more version at the end
// changes only the last part.
func TestParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 1000), rapid.IntRange(0, limits.AvailableVersionBytes-1000)), 1, 12).Draw(t, "sizes")
		o := sizedOffer(sizes)
		o.Content.Packages[0].Display.LongDescription = strings.Repeat("y", rapid.SampledFrom([]int{0, 1000, limits.AvailableDisplayBytes - 1000}).Draw(t, "description"))
		parts, conflicts := repository.Merge([]repository.Offer{o}, nil)
		n := 0
		for i, part := range parts {
			data, err := json.Marshal(part)
			if err != nil || len(data) > limits.AvailablePartBytes {
				t.Fatalf("part %d has %d bytes, %v", i, len(data), err)
			}
			if int(part.Part) != i || (part.Display != nil) != (i == 0) {
				t.Fatalf("part %d is numbered %d, with display: %v", i, part.Part, part.Display != nil)
			}
			for _, v := range part.Versions {
				if want := fmt.Sprintf("1.%d.0", n); v.Version != want || v.Repository != "a" {
					t.Fatalf("got %s of %s, want %s", v.Version, v.Repository, want)
				}
				n++
			}
		}
		if n != len(sizes) || len(conflicts) > 0 {
			t.Fatalf("%d of %d versions, %v", n, len(sizes), conflicts)
		}
		before := o.Content.Packages[0].Versions
		o.Content.Packages[0].Versions = append(before[:n:n], sizedOffer(append(sizes, 5000)).Content.Packages[0].Versions[n])
		after, _ := repository.Merge([]repository.Offer{o}, parts)
		if diff := gocmp.Diff(parts[:len(parts)-1], after[:len(parts)-1]); diff != "" || len(after) > len(parts)+1 {
			t.Fatalf("%d parts became %d: %s", len(parts), len(after), diff)
		}
	})
}

func TestVersionLargerThanAPart(t *testing.T) {
	t.Parallel()
	available, conflicts := repository.Merge([]repository.Offer{sizedOffer([]int{10, limits.AvailablePartBytes, 10})}, nil)
	require.Equal(t, "1.0.0= of a, 1.2.0= of a", listed(available), "offered")
	if got := strings.Join(conflicts["a"], "\n"); !strings.Contains(got, "shop.example.com 1.1.0: it has 5243") || !strings.Contains(got, "the limit is 524") {
		t.Errorf("got %s", got)
	}
}

func TestObjectName(t *testing.T) {
	t.Parallel()
	if a, b := repository.ObjectName("shop.example.com", 0), repository.ObjectName("shop.example.com", 12); a != "shop.example.com" || b != "shop.example.com.part-12" {
		t.Errorf("got %s, %s", a, b)
	}
}

func TestMain(m *testing.M) { properties.Main(m, 500) }
