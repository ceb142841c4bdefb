package metrics

const (
	labelName      = "pko_name"
	labelNamespace = "pko_namespace"
)

// Metrics per package, collected from the cache of Packages.
var (
	PackageAvailability = gauge("package_operator_package_availability",
		"Whether the package is available: 0 no, 1 yes, 2 not known.", labelName, labelNamespace, "image")
	PackageCreated = gauge("package_operator_package_created_timestamp_seconds",
		"When the package was created, in seconds since 1970.", labelName, labelNamespace)
	PackageLoadDuration = gauge("package_operator_package_load_duration_seconds",
		"How long the last successful load of the package took.", labelName, labelNamespace)
	PackageRevision = gauge("package_operator_package_revision",
		"Number of the current revision of the package.", labelName, labelNamespace)
	PackageLoads = counter("lockstep_package_loads_total",
		"How often this process pulled and rendered the package.", labelName, labelNamespace)
	PackageSummary = gauge("lockstep_package_summary",
		"1 for the present state of the package, which is the summary of `kubectl package status -o json`; version belongs to the revision in charge.",
		labelName, labelNamespace, "summary", "version")
	PackageBlockedSince = gauge("lockstep_package_blocked_since_seconds",
		"Since when the package is not as its spec demands, in seconds since 1970, while something blocks it: phase is the phase of the first blocking object, reason the reason of the condition that explains it.",
		labelName, labelNamespace, "phase", "reason")
	PackageDeletingSince = gauge("lockstep_package_deleting_since_seconds",
		"Since when the package is being deleted, in seconds since 1970; phase is the phase of the first object that the deletion waits for, reason explains the wait.",
		labelName, labelNamespace, "phase", "reason")
)

// Metrics of all packages together.
var (
	Packages = gauge("lockstep_packages",
		"Number of packages in each state, in the words of lockstep_package_summary.", "summary")
	Targets = gauge("lockstep_targets",
		"Number of clusters that packages name by targetRef, by whether they are connected: connected, away or unknown.", "state").alpha()
	Dependencies = gauge("lockstep_dependencies",
		"Number of dependencies of packages that are satisfied, are waited for, and are not satisfied.", "state").alpha()
)

// Metrics of the eleven latest revisions of a package, and of sets without a package.
var (
	SetCreated = gauge("package_operator_object_set_created_timestamp_seconds",
		"When the revision was created, in seconds since 1970: of the eleven latest of each package, history included.", labelName, labelNamespace, "pko_package_instance")
	SetSucceeded = gauge("package_operator_object_set_succeeded_timestamp_seconds",
		"When the revision was rolled out, in seconds since 1970.", labelName, labelNamespace, "pko_package_instance", "image")
)

// Metrics of the watches of managed objects.
var (
	CacheInformers = gauge("package_operator_managed_cache_informers_total",
		"Number of kinds of managed objects that are watched. All owners share the watches, so owner is empty.", "owner")
	CacheObjects = gauge("package_operator_managed_cache_objects_total",
		"Number of managed objects of a kind that are remembered. All owners share the records, so owner is empty.", "owner", "gvk")
)

// Metrics of templates and repositories.
var (
	TemplateRenders = counter("lockstep_objecttemplate_renders_total",
		"How often this process rendered the template.", labelName, labelNamespace)
	RepositoryReady = gauge("lockstep_repository_ready",
		"Whether the content of the repository is fetched and offered: 0 no, 1 yes, 2 not known.", "repository", "repository_namespace")
	Repositories = gauge("lockstep_repositories",
		"Number of repositories that are ready, that failed, and whose state is not known.", "state")
)

// Metrics of the process.
var (
	BuildInfo = gauge("lockstep_build_info", "The version of the manager, and of Go; always 1.", "version", "go_version")
	Leader    = gauge("lockstep_leader", "Whether this process leads: 1 yes, 0 no.")
	Policy    = gauge("lockstep_deletion_policy_present",
		"Whether deletion in the foreground is refused, which the order of teardown requires: 1 yes, 0 no. Only the leader checks.")
)

// Events since the start of this process.
var (
	Writes = newCounters("lockstep_writes_total",
		"Writes to managed objects that were performed or failed, by their purpose; a correction reverts a change by another writer.",
		label{"action", []string{"create", "change", "adopt", "correct", "relabel", "recreate", "delete", "release", "retain"}},
		label{"outcome", []string{"performed", "failed"}})
	Fights = newCounters("lockstep_fights_total",
		"Corrections of objects that another writer changes back again and again: the next one is made after a pause.")
	Rollouts = newHistogram("lockstep_rollout_duration_seconds",
		"From the claim of a revision to its success.", rolloutBuckets)
	Phases = newHistogram("lockstep_phase_duration_seconds",
		"From the opening of a phase until all of its objects were ready for the first time.", rolloutBuckets)
	Loads = newHistogram("lockstep_load_duration_seconds",
		"Loads of packages: pulled, rendered and checked.", loadBuckets, label{"outcome", []string{"loaded", "failed"}})
	Pulls = newHistogram("lockstep_pull_duration_seconds",
		"Pulls of images of packages, also those that the manager has in its cache.", loadBuckets, label{"outcome", []string{"pulled", "failed"}})
)

var (
	rolloutBuckets = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600}
	loadBuckets    = []float64{.01, .05, .1, .5, 1, 5, 15, 60}
)
