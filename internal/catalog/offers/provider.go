package offers

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

const providersNamed = 8 // number of providers of an API that are kept, and named in messages

// NameOf returns the name of the package that packageRef leads to: the name in it, or the package
// that was chosen last for its API. It is empty if there is none.
func NameOf(pkg corev1alpha1.GenericPackage) string {
	ref, last := pkg.PackageSpec().PackageRef, pkg.PackageStatus().LastAttempted
	switch {
	case ref == nil:
		return ""
	case ref.API == nil:
		return ref.Name
	case last == nil:
		return ""
	}
	return last.PackageName
}

// APIOf returns the API of a reference, or nil if the reference has a name.
func APIOf(ref *corev1alpha1.PackageReference) *corev1alpha1.ProvidedAPI {
	if ref == nil || ref.API == nil {
		return nil
	}
	api := corev1alpha1.ProvidedAPI(*ref.API)
	return &api
}

// Provide reports whether any version of a package can be chosen for its API: it provides the API,
// is not retracted, and can be installed in the scope. It stops reading at the first such version.
func Provide(offered iter.Seq[Offered], api corev1alpha1.ProvidedAPI, scope corev1alpha1.Scope) bool {
	for o := range offered {
		v := &o.Version
		if v.Retracted == "" && o.notInstallable() == "" && slices.Contains(v.Provides, api) && (len(v.Scopes) == 0 || slices.Contains(v.Scopes, scope)) {
			return true
		}
	}
	return false
}

// Provider is the package that packageRef leads to, or the reason why there is none.
type Provider struct {
	// Name is the name of the package; empty if there is none.
	Name string
	// API is the API that it was chosen for; nil if packageRef names the package.
	API *corev1alpha1.ProvidedAPI
	// Others are the sorted names of other packages that provide the API. While no package is
	// chosen, they are all providers. The list is cut, because authors of repositories decide its
	// length; More is the number of omitted names.
	Others []string
	More   int
	// waits reports whether the choice waits for repositories that were never fetched.
	waits bool
}

// ProviderOf returns the package that packageRef leads to: the only one that provides its API. A
// package that was chosen before stays, regardless of other offers, while it provides the API or is
// installed. While some repositories have never been fetched, no package is the only one.
func ProviderOf(pkg corev1alpha1.GenericPackage, providers, pending []string) Provider {
	ref, status := pkg.PackageSpec().PackageRef, pkg.PackageStatus()
	p := Provider{Name: ref.Name, API: APIOf(ref)}
	if p.API == nil {
		return p
	}

	providers = slices.Compact(slices.Sorted(slices.Values(providers)))
	last, resolved := status.LastAttempted, status.Resolved
	switch {
	case last != nil && slices.Contains(providers, last.PackageName):
		p.Name = last.PackageName
	case last != nil && last.API != nil && *last.API == *ref.API &&
		resolved != nil && cmp.Or(resolved.CatalogName, resolved.PackageName) == last.PackageName:
		p.Name = last.PackageName
	case len(providers) == 1 && len(pending) > 0:
		p.waits = true
	case len(providers) == 1:
		p.Name = providers[0]
	}

	providers = slices.DeleteFunc(providers, func(name string) bool { return name == p.Name })
	p.Others = slices.Clone(providers[:min(len(providers), providersNamed)])
	p.More = len(providers) - len(p.Others)
	return p
}

// Refusal returns the reason and the message of the condition Resolved if there is no package;
// otherwise they are empty.
func (p Provider) Refusal() (reason, message string) {
	switch {
	case p.Name != "":
		return "", ""
	case len(p.Others) == 0:
		return corev1alpha1.ReasonUnknownPackage, "no repository offers a package that provides " + p.API.String()
	case p.waits:
		return corev1alpha1.ReasonUnknownPackage, fmt.Sprintf("%s provides %s, and others may: pause repositories that cannot be fetched, or set packageRef.name in the place of api", p.Others[0], p.API)
	}
	return corev1alpha1.ReasonAmbiguousProvider, fmt.Sprintf("the packages %s provide %s: set packageRef.name to one of them, in the place of api", few(p.Others, p.More), p.API)
}

// NotFetched adds the repositories that were never fetched to a message, if there are any.
func NotFetched(pending []string) string {
	if len(pending) == 0 {
		return ""
	}
	return "; not fetched yet: " + strings.Join(pending, ", ")
}

// Describe adds the name of the package, and the other providers of its API, to a message about
// versions.
func (p Provider) Describe(message string) string {
	if p.API == nil {
		return p.Name + ": " + message
	}
	text := fmt.Sprintf("%s, chosen for %s: %s", p.Name, p.API, message)
	if len(p.Others) > 0 {
		verb := "are"
		if len(p.Others) == 1 {
			verb = "is"
		}
		text += fmt.Sprintf("; %s %s also offered with this API: the first choice stays; to change it, set packageRef.name", few(p.Others, p.More), verb)
	}
	return text
}

// few lists names, of a total of len(names)+more.
func few(names []string, more int) string {
	if more > 0 {
		return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", more)
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}
