package limits

import "time"

// Limits of availability probes, so that a package can neither stall the engine nor
// exhaust its memory. All but the times are counted and not timed: the verdict on an
// object does not depend on how busy the machine is.
const (
	// Probes is how many probes one revision has at most, over all entries.
	// Each object of a kind is judged by all probes of its kind.
	Probes = 1000
	// ProbeCELBytes is the size of one CEL rule. Compiling costs up to 1 µs per
	// byte.
	ProbeCELBytes = 16 << 10
	// ProbeCELCost is what one evaluation of a CEL rule may cost, in cost units
	// of cel-go: 10 to 100 ms of work. It also bounds the strings and lists that
	// a rule builds.
	ProbeCELCost = 1_000_000
	// ProbeCELTime is the longest that one evaluation of a CEL rule may take: a
	// safety net for comparisons of large values, which CEL counts as one step.
	ProbeCELTime = 5 * time.Second
	// ProbeCost is what evaluating a probe costs beside what CEL and jq count, in the
	// same units.
	ProbeCost = 10
	// ProbeObjectCost is what all probes on one object may cost: half a second, or a
	// second in one regular expression. A pass does not end within an object.
	ProbeObjectCost = 5 * ProbeCELCost
	// ProbesCost is what evaluating the probes on all objects of a revision may cost: 5
	// to 20 s. 50,000 objects with ten ordinary probes each take a tenth of it.
	ProbesCost = 200 * ProbeCELCost
	// ProbeTurn is the time slice for probes in one pass. The rest is evaluated in the
	// next one, after other packages and with the owner's current spec.
	ProbeTurn = 100 * time.Millisecond
	// ProbeTurns is how long statuses are not updated while that goes on: what
	// evaluating all probes takes on a busy machine.
	ProbeTurns = 30 * time.Second
	// ProbePatternSteps is how many steps of a regular expression cost one unit of
	// ProbeCELCost: the instructions of its program times the bytes of the text. A
	// step takes up to 20 ns.
	ProbePatternSteps = 10
	// ProbeJQBytes is the size of one jq expression.
	ProbeJQBytes = 2 << 10
	// ProbeJQSteps is how many instructions one evaluation of a jq expression
	// may take: some 10 ms of work. A path of ten steps takes about as many.
	ProbeJQSteps = 100_000
	// ProbeJQWork is how many bytes of values one evaluation of a jq expression
	// may build, results included.
	ProbeJQWork = 1 << 20
	// ProbeJQNumberBits bounds integers that a jq expression computes, because
	// jq's are of any length.
	ProbeJQNumberBits = 256
	// ProbeJQTime is the longest that one evaluation of a jq expression may
	// take: a safety net far above what ProbeJQSteps allow in practice.
	ProbeJQTime = time.Second
	// ProbeMessageValueBytes is how much of a value a probe's message quotes.
	ProbeMessageValueBytes = 128
)

// Limits of what is learned of live objects to judge drift.
const (
	// ShapesPerKind is how many lists and maps are remembered per kind. Kinds
	// with more have open-ended keys; what is beyond is treated as unknown: as
	// a whole list, key by key for a map.
	ShapesPerKind = 2000
	// FieldsDepth bounds the nesting of managedFields that is followed. The API
	// server limits requests to a depth of 10,000; types go to about 20.
	FieldsDepth = 64
)

// Limits of the check against the schemas that the API server publishes.
const (
	// SchemaIndexBytes is the size of the index /openapi/v3: about 150 bytes
	// per group version, of which large clusters have some hundred.
	SchemaIndexBytes = 4 << 20
	// SchemaDocumentBytes is the size of the document of one group version. The
	// core group's is 2 MiB; large CRDs reach 10 MiB.
	SchemaDocumentBytes = 32 << 20
	// SchemaDocuments is how many documents are kept at once.
	SchemaDocuments = 12
	// SchemaIdle is how long decoded schemas and the index are kept after their
	// last use: longer than a rollout stays between two phases as a rule,
	// short enough to be gone from the memory of a manager at rest.
	SchemaIdle = 30 * time.Second
	// SchemaRounds is how often an object with unknown fields is looked at. Each
	// round finds one of them per map, and takes some 50 µs.
	SchemaRounds = 100
	// SchemaErrors is how many fields the error of one object names.
	SchemaErrors = 20
)
