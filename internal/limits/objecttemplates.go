package limits

import "time"

// Limits of ObjectTemplates.
const (
	ObjectTemplateTime        = 2 * time.Second // of one rendering, so that few templates cannot hold all workers for long
	ObjectTemplateBytes       = 3 << 19         // of what a template renders: the largest object that API servers store
	ObjectTemplateSources     = 100             // of one template; each is a watch, up to SourceWatches
	ObjectTemplateItems       = 1000            // of all sources of one template
	ObjectTemplateKeyBytes    = 2 << 10         // of a JSONPath; jq expressions have the limit of probes
	ObjectTemplateUnions      = 64              // product of the lengths of all unions in a JSONPath, each of which multiplies the results
	ObjectTemplateValues      = 4 << 20         // bytes of all values of one template, as those of a package's templates
	ObjectTemplateSecretBytes = 1 << 10         // of values of Secrets that are looked for in names, which have 253 at most
	SourceWatches             = 50              // of single sources of one namespace, a stream each; over that, one of the metadata of all objects of their kind there
)
