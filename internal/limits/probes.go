package limits

import "time"

// Limits of availability probes. All but the times are counted, so that results do not
// depend on the load of the machine.
const (
	// Probes of one revision; each object is evaluated by all probes of its kind.
	Probes = 1000
	// ProbeCELBytes is the size of one CEL rule: up to 1 µs per byte to compile.
	ProbeCELBytes = 16 << 10
	// ProbeCELCost is the cost of one evaluation in units of cel-go: 10 to 100 ms. It
	// bounds strings and lists that a rule builds, too.
	ProbeCELCost = 1_000_000
	// ProbeCELTime is a safety net for comparisons of large values, one step for CEL.
	ProbeCELTime = 5 * time.Second
	// ProbeCost is the cost of a probe beside what CEL and jq count.
	ProbeCost = 10
	// ProbeObjectCost is the cost of all probes on one object: up to a second.
	ProbeObjectCost = 5 * ProbeCELCost
	// ProbesCost is the cost of all probes on all objects of a revision: 5 to 20 s. 50,000
	// objects with ten ordinary probes each take a tenth of it.
	ProbesCost = 200 * ProbeCELCost
	// ProbeTurn is the time for probes in one reconcile. The rest is evaluated in the next one.
	ProbeTurn = 100 * time.Millisecond
	// ProbeTurns is how long statuses are not updated meanwhile.
	ProbeTurns = 30 * time.Second
	// ProbePatternSteps is how many steps of a regular expression, of up to 20 ns, cost one
	// unit: instructions times bytes of the text.
	ProbePatternSteps = 10
	// ProbeJQBytes is the size of one jq expression.
	ProbeJQBytes = 2 << 10
	// ProbeJQSteps bounds the instructions of one jq evaluation: some 10 ms.
	ProbeJQSteps = 100_000
	// ProbeJQWork is the size of the values that one jq evaluation builds.
	ProbeJQWork = 1 << 20
	// ProbeJQNumberBits bounds integers of jq, which are of any length.
	ProbeJQNumberBits = 256
	// ProbeJQTime is a safety net far above ProbeJQSteps.
	ProbeJQTime = time.Second
	// ProbeMessageValueBytes is how much of a value a probe's message quotes.
	ProbeMessageValueBytes = 128
)

// Limits of what is learned of live objects to judge drift.
const (
	// ShapesPerKind is how many lists and maps are remembered per kind; kinds with more have
	// open-ended keys. The rest is treated as unknown: as a whole list, key by key for a map.
	ShapesPerKind = 2000
	// FieldsDepth bounds the nesting of managedFields; types go to about 20.
	FieldsDepth = 64
)

// Limits of the check against the schemas that the API server publishes.
const (
	// SchemaIndexBytes is the size of /openapi/v3: 150 bytes per group version.
	SchemaIndexBytes = 4 << 20
	// SchemaDocumentBytes is the size of one group version; large CRDs reach 10 MiB.
	SchemaDocumentBytes = 32 << 20
	// SchemaDocuments is how many documents are kept at once.
	SchemaDocuments = 12
	// SchemaIdle is how long schemas are kept after their last use: longer than between two phases.
	SchemaIdle = 30 * time.Second
	// SchemaRounds bounds the search for unknown fields; each takes 50 µs and finds one per map.
	SchemaRounds = 100
	// SchemaErrors is how many fields the error of one object names.
	SchemaErrors = 20
)
