package probes

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
)

// keptMetadata are the fields of metadata that Trim always keeps.
var keptMetadata = []string{
	"name", "namespace", "labels", "generation", "uid", "deletionTimestamp", "ownerReferences", "resourceVersion",
}

// managedFields are never kept: they are larger than most objects.
const managedFields = "managedFields"

// alwaysKept reports whether a path needs no mention: Trim keeps it anyway, or never.
func alwaysKept(path []string) bool {
	switch path[0] {
	case "apiVersion", "kind", "status":
		return true
	case "metadata":
		if len(path) == 1 {
			return false
		}
		for _, key := range keptMetadata {
			if path[1] == key {
				return true
			}
		}
		return path[1] == managedFields
	default:
		return false
	}
}

// Trim returns compact JSON of what probes read: apiVersion, kind, metadata (name,
// namespace, labels, generation, uid, deletionTimestamp, ownerReferences, resourceVersion),
// status, and needs; with needs.Whole all but managedFields.
//
// Values of Secrets are replaced by fingerprints, keyed per process, where needed:
// presence, emptiness and equality stay the same.
func Trim(obj map[string]any, needs Needs) []byte {
	var trimmed map[string]any
	if needs.Whole {
		trimmed = withoutManagedFields(obj)
	} else {
		trimmed = skeleton(obj)
		for _, path := range needs.Paths {
			copyPath(trimmed, obj, path)
		}
	}
	if isSecret(groupKind(obj)) {
		fingerprintValues(trimmed)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(trimmed); err != nil {
		// Decoded JSON can always be encoded; anything else is no live object.
		return nil
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func withoutManagedFields(obj map[string]any) map[string]any {
	trimmed := shallow(obj)
	if metadata, isMap := obj["metadata"].(map[string]any); isMap {
		metadata = shallow(metadata)
		delete(metadata, managedFields)
		trimmed["metadata"] = metadata
	}
	return trimmed
}

func shallow(fields map[string]any) map[string]any {
	result := make(map[string]any, len(fields))
	for key, value := range fields {
		result[key] = value
	}
	return result
}

// skeleton is what is kept of every object.
func skeleton(obj map[string]any) map[string]any {
	trimmed := make(map[string]any, 8)
	for _, key := range []string{"apiVersion", "kind", "status"} {
		if value, found := obj[key]; found {
			trimmed[key] = value
		}
	}
	from, _ := obj["metadata"].(map[string]any)
	metadata := make(map[string]any, len(keptMetadata))
	for _, key := range keptMetadata {
		if value, found := from[key]; found {
			metadata[key] = value
		}
	}
	trimmed["metadata"] = metadata
	return trimmed
}

// copyPath copies the value at path, or what the path ends at, so that a probe fails in the
// same way.
func copyPath(trimmed, obj map[string]any, path []string) {
	for i, key := range path {
		value, found := obj[key]
		if !found {
			return
		}
		next, isMap := value.(map[string]any)
		if !isMap || i == len(path)-1 {
			if isMap && i == 0 && key == "metadata" {
				next = shallow(next)
				delete(next, managedFields)
				value = next
			}
			trimmed[key] = value
			return
		}
		inner, _ := trimmed[key].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
			trimmed[key] = inner
		}
		trimmed, obj = inner, next
	}
}

func fingerprintValues(secret map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		value, found := secret[field]
		if !found {
			continue
		}
		values, isMap := value.(map[string]any)
		if !isMap {
			delete(secret, field)
			continue
		}
		masked := make(map[string]any, len(values))
		for key, value := range values {
			masked[key] = fingerprint(value)
		}
		secret[field] = masked
	}
}

// fingerprintKey makes fingerprints of one process useless outside of it.
var fingerprintKey = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, by its contract
	return key
})

// fingerprint returns 12 bytes as base64 for the value of a Secret, empty for an empty one.
func fingerprint(value any) string {
	if value == nil || value == "" {
		return ""
	}
	mac := hmac.New(sha256.New, fingerprintKey())
	_, _ = fmt.Fprint(mac, value)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil)[:12])
}
