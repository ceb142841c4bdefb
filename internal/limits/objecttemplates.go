package limits

import "time"

// Limits of ObjectTemplates.
const (
	ObjectTemplateTime        = 2 * time.Second // one rendering, so that few templates cannot occupy all workers
	ObjectTemplateBytes       = 3 << 19         // the rendered object, as large as API servers store
	ObjectTemplateSources     = 100             // sources of one template, each a watch, up to SourceWatches
	ObjectTemplateItems       = 1000            // items of all sources of one template
	ObjectTemplateKeyBytes    = 2 << 10         // a JSONPath; jq expressions have the limit of probes
	ObjectTemplateUnions      = 64              // product of the lengths of all unions in a JSONPath; each multiplies the results
	ObjectTemplateValues      = 4 << 20         // bytes of all values of one template
	ObjectTemplateSecretBytes = 1 << 10         // internal: values of Secrets that are searched in names, which have at most 253 bytes
	SourceWatches             = 50              // internal: watches of single sources in one namespace; above that, one watch of metadata for each kind
)
