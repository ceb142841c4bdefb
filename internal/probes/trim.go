package probes

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// keptMetadata are the fields of metadata that Trim always keeps.
var keptMetadata = []string{
	"name", "namespace", "labels", "generation", "uid", "deletionTimestamp", "ownerReferences", "resourceVersion",
}

// managedFields is never kept.
const managedFields = "managedFields"

// alwaysKept reports whether the needs can leave out a path, because Trim keeps it anyway or never.
func alwaysKept(path []string) bool {
	switch path[0] {
	case "apiVersion", "kind", "status":
		return true
	}
	return path[0] == "metadata" && len(path) > 1 && (slices.Contains(keptMetadata, path[1]) || path[1] == managedFields)
}

// Trim returns compact JSON of the fields that probes read: the skeleton and needs, or everything
// but managedFields. It replaces values of Secrets with fingerprints, keyed per process, which
// preserve presence, emptiness and equality.
func Trim(obj map[string]any, needs Needs) []byte {
	var trimmed map[string]any
	if needs.Whole {
		trimmed = withoutManagedFields(obj)
	} else {
		// Every trimmed object has these fields, for selectors, generations and messages.
		metadata, _ := obj["metadata"].(map[string]any)
		trimmed = pick(obj, "apiVersion", "kind", "status")
		trimmed["metadata"] = pick(metadata, keptMetadata...)
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
		// Decoded JSON can always be encoded, so obj is not a live object.
		return nil
	}

	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// withoutManagedFields returns a copy down to metadata; the live object is shared with other
// readers and must not change.
func withoutManagedFields(obj map[string]any) map[string]any {
	trimmed := maps.Clone(obj)
	if metadata, isMap := obj["metadata"].(map[string]any); isMap {
		metadata = maps.Clone(metadata)
		delete(metadata, managedFields)
		trimmed["metadata"] = metadata
	}
	return trimmed
}

// pick returns the fields that exist. A missing field stays missing, since probes distinguish it
// from null.
func pick(from map[string]any, keys ...string) map[string]any {
	picked := make(map[string]any, 8)
	for _, key := range keys {
		if value, found := from[key]; found {
			picked[key] = value
		}
	}
	return picked
}

// copyPath copies the value at path. If the path ends early, it copies the last value on the way,
// so that a probe fails in the same way.
func copyPath(trimmed, obj map[string]any, path []string) {
	for i, key := range path {
		value, found := obj[key]
		if !found {
			return
		}
		next, isMap := value.(map[string]any)
		if !isMap || i == len(path)-1 {
			// A probe that reads all of metadata does not get managedFields, which are the largest
			// part of many objects.
			if isMap && i == 0 && key == "metadata" {
				value = withoutManagedFields(obj)[key]
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

// fingerprintValues replaces data and stringData in place. Fields that are not maps are dropped,
// because their form is unknown.
func fingerprintValues(secret map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, isMap := secret[field].(map[string]any)
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

// fingerprintKey makes the fingerprints of a process useless outside of it.
var fingerprintKey = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, by its contract
	return key
})

// fingerprint returns 12 bytes as base64 for the value of a Secret, or an empty string for an empty
// value.
func fingerprint(value any) string {
	if value == nil || value == "" {
		return ""
	}
	mac := hmac.New(sha256.New, fingerprintKey())
	_, _ = fmt.Fprint(mac, value)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil)[:12])
}
