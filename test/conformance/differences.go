package conformance

import "slices"

// Difference is a decision that Lockstep makes differently from the engine that rows were observed
// with: the topic of its line in the table in docs/design/differences.md.
type Difference string

// The differences.
const (
	DigestsOfDependencies Difference = "the version of a dependency"
	InstalledTogether     Difference = "several dependencies that are missing"
	RaisedTogether        Difference = "raising shared dependencies"
	NeverLowered          Difference = "lowering shared dependencies"
	NoPartOfASet          Difference = "dependencies that cannot all be satisfied"
	ProvidersAreFound     Difference = "a dependency on an API that is not served"
	AlwaysWaits           Difference = "waiting for dependencies"
	UniqueInItsScope      Difference = "a package that is unique in the cluster"
	EngineIsNoDependency  Difference = "a dependency on the engine"
	NoLock                Difference = "the record of installed packages"
	OneNamePerScope       Difference = "two packages of one name"
	NoInactiveRevision    Difference = "a revision that is not active"
	EmptyRange            Difference = "an empty constraint"
	LongConstraint        Difference = "a long constraint"
	TagsAreTags           Difference = "a range in the place of the tag of an image"
	NotCopied             Difference = "packages of the whole cluster in a namespace"
	OtherController       Difference = "constraints on the version of kapp-controller"
	SlowerRetries         Difference = "a fetch that failed"
	NoOverlays            Difference = "overlays of ytt on a package"
)

// listed are the rows that show the differences, starting with testdata's. Each has to give a
// different result.
var listed = map[Difference][]string{
	DigestsOfDependencies: {"same-digest", "update-digest-agreed", "digest-all-same", "scenario-digest-upgrade"},
	InstalledTogether:     {"one-after-the-other"},
	RaisedTogether:        {"raised-with-an-option"},
	NeverLowered:          {"lowered"},
	NoPartOfASet:          {"in-part", "scenario-no-valid-version"},
	ProvidersAreFound:     {"api-provider-left"},
	AlwaysWaits:           {"waits-for-nothing"},
	UniqueInItsScope:      {"cluster-once", "proposal-one-per-cluster"},
	EngineIsNoDependency:  {"on-the-engine"},
	NoLock:                {"recorded-in-a-lock", "resolve-self-wrong-version", "resolve-self-absent-missing-direct"},
	OneNamePerScope:       {"twice"},
	NoInactiveRevision:    {"inactive", "inactive-objects"},
	EmptyRange:            {"constraint-empty"},
	LongConstraint:        {"constraint-long"},
	TagsAreTags:           {"reference-range-like-a-tag"},
	NotCopied:             {"namespace-presented", "global-list-merge"},
	OtherController:       {"validate-other-controller"},
	SlowerRetries:         {"retries", "retry-due", "sync-failure-backoff", "sync-failure-due"},
	NoOverlays:            {"overlays", "overlay-annotation-order"},
}

// listedAs returns the difference that a row shows.
func listedAs(name string) Difference {
	for difference, names := range listed {
		if slices.Contains(names, name) {
			return difference
		}
	}
	return ""
}
