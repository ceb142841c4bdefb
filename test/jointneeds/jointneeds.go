// Package jointneeds has sets of packages with common dependencies, for tests of applying them at
// once.
package jointneeds

import (
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Set has the offers, the applied packages, and the required outcome.
type Set struct {
	Name string
	// Offered has one version per line, with its dependencies: "ui 2.0.0: srv ^2, cache? >=1". A
	// question mark makes one optional.
	Offered string
	// Applied are Packages: "a: ui >=1" has the name a.
	Applied []string
	// Want has the expected versions of the applied Packages, by name, and of the packages
	// installed for them, by package. "" means that the package stays without a version.
	Want map[string]string
}

// Release is a version of a package.
type Release struct {
	Package, Version string
	Needs            []corev1alpha1.Dependency
}

// Releases returns the offers.
func (s Set) Releases() (all []Release) {
	for line := range strings.Lines(s.Offered) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		head, needs, _ := strings.Cut(line, ":")
		r := Release{}
		r.Package, r.Version, _ = strings.Cut(head, " ")
		for need := range strings.SplitSeq(needs, ",") {
			if need = strings.TrimSpace(need); need == "" {
				continue
			}
			name, constraint, _ := strings.Cut(need, " ")
			d := corev1alpha1.Dependency{Name: strings.TrimSuffix(name, "?"), Optional: strings.HasSuffix(name, "?")}
			d.Package = &corev1alpha1.DependencyPackage{Name: d.Name, VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
			r.Needs = append(r.Needs, d)
		}
		all = append(all, r)
	}

	return all
}

// References returns the applied packages, by name.
func (s Set) References() map[string]*corev1alpha1.PackageReference {
	all := map[string]*corev1alpha1.PackageReference{}
	for _, text := range s.Applied {
		name, rest, _ := strings.Cut(text, ": ")
		pkg, constraint, _ := strings.Cut(rest, " ")
		all[name] = &corev1alpha1.PackageReference{Name: pkg, VersionSelection: corev1alpha1.VersionSelection{Version: constraint}}
	}
	return all
}

// Sets are ten such sets.
var Sets = []Set{
	{
		Name: "one version fits all",
		Offered: `u1 1.0.0: base <2
			u2 1.0.0: base >=1
			u3 1.0.0: base >=1.5
			u4 1.0.0: base >=1
			left 1.0.0: base <2
			base 1.0.0
			base 1.5.0
			base 2.0.0`,
		Applied: []string{"u1: u1", "u2: u2", "u3: u3", "u4: u4", "left: left"},
		Want:    map[string]string{"u1": "1.0.0", "u2": "1.0.0", "u3": "1.0.0", "u4": "1.0.0", "left": "1.0.0", "base": "1.5.0"},
	},
	{
		Name: "two are shared",
		Offered: `a 1.0.0: x >=1, y <3
			b 1.0.0: x <2, y >=2
			x 1.0.0
			x 1.2.0
			x 2.0.0
			y 1.0.0
			y 2.0.0
			y 3.0.0`,
		Applied: []string{"a: a", "b: b"},
		Want:    map[string]string{"a": "1.0.0", "b": "1.0.0", "x": "1.2.0", "y": "2.0.0"},
	},
	{
		Name: "a requirement of one limits another",
		Offered: `a 1.0.0: mid
			b 1.0.0: base <2
			mid 1.0.0: base <2
			mid 2.0.0: base >=2
			base 1.0.0
			base 1.5.0
			base 2.0.0`,
		Applied: []string{"a: a", "b: b"},
		Want:    map[string]string{"a": "1.0.0", "b": "1.0.0", "mid": "1.0.0", "base": "1.5.0"},
	},
	{
		Name: "the version of one is limited by another",
		Offered: `ui 1.0.0: srv ^1
			ui 2.0.0: srv ^2
			adm 1.0.0: srv <2
			srv 1.0.0
			srv 2.0.0`,
		Applied: []string{"ui: ui >=1", "adm: adm"},
		Want:    map[string]string{"ui": "1.0.0", "adm": "1.0.0", "srv": "1.0.0"},
	},
	{
		Name: "a version before its requirements",
		Offered: `ui 1.0.0: srv ^1
			ui 2.0.0: srv ^2
			srv 1.0.0`,
		Applied: []string{"ui: ui >=1"},
		Want:    map[string]string{"ui": "1.0.0", "srv": "1.0.0"},
	},
	{
		Name: "one that contradicts fails",
		Offered: `a 1.0.0: base <2
			b 1.0.0: base >=2
			c 1.0.0: base <2
			base 1.0.0
			base 1.5.0
			base 2.0.0`,
		Applied: []string{"a: a", "b: b", "c: c"},
		Want:    map[string]string{"a": "1.0.0", "b": "", "c": "1.0.0", "base": "1.5.0"},
	},
	{
		Name: "limits from above and below of a chain",
		Offered: `top 1.0.0: mid
			edge 1.0.0: mid <3
			deep 1.0.0: low <3
			mid 1.0.0: low >=1
			mid 2.0.0: low >=2
			mid 3.0.0: low >=3
			low 1.0.0
			low 2.0.0
			low 2.1.0
			low 3.0.0`,
		Applied: []string{"top: top", "edge: edge", "deep: deep"},
		Want:    map[string]string{"top": "1.0.0", "edge": "1.0.0", "deep": "1.0.0", "mid": "2.0.0", "low": "2.1.0"},
	},
	{
		Name: "an optional one does not limit versions",
		Offered: `a 1.0.0: cache? >=2
			b 1.0.0: cache <2
			cache 1.0.0
			cache 2.0.0`,
		Applied: []string{"a: a", "b: b"},
		Want:    map[string]string{"a": "1.0.0", "b": "1.0.0", "cache": "1.0.0"},
	},
	{
		Name: "two Packages of one package",
		Offered: `web 1.0.0: base <2
			web 2.0.0: base >=2
			api 1.0.0: base <2
			base 1.0.0
			base 2.0.0`,
		Applied: []string{"web-a: web", "web-b: web", "api: api"},
		Want:    map[string]string{"web-a": "1.0.0", "web-b": "1.0.0", "api": "1.0.0", "base": "1.0.0"},
	},
	{
		Name: "groups that have nothing in common",
		Offered: `a 1.0.0: x >=1
			b 1.0.0: x <2
			c 1.0.0: y >=1
			d 1.0.0: y <2
			e 1.0.0: z >=9
			x 1.0.0
			x 2.0.0
			y 1.0.0
			y 2.0.0`,
		Applied: []string{"a: a", "b: b", "c: c", "d: d", "e: e"},
		Want:    map[string]string{"a": "1.0.0", "b": "1.0.0", "c": "1.0.0", "d": "1.0.0", "e": "", "x": "1.0.0", "y": "1.0.0"},
	},
}
