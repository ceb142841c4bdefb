package registry

import (
	"bytes"
	"encoding/json"
	"errors"

	"lockstep.run/lockstep/internal/limits"
)

// list is an array from a registry. Empty elements of a few bytes take a hundred times as much
// memory, so their number is limited.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	return each(data, func(element T) error {
		if len(*l) == limits.RegistryEntries {
			return failf(ReasonLimit, "", "the registry sent a list with more than %d entries", limits.RegistryEntries)
		}
		*l = append(*l, element)
		return nil
	})
}

// errStop ends the reading of an array early.
var errStop = errors.New("no more elements are read")

// each decodes the elements of an array one by one until use fails. It treats errStop as a success.
func each[T any](array []byte, use func(T) error) error {
	d := json.NewDecoder(bytes.NewReader(array))
	switch begin, err := d.Token(); {
	case err != nil || begin == nil: // null
		return err
	case begin != json.Delim('['):
		return errors.New("no array")
	}

	for d.More() {
		var element T
		err := d.Decode(&element)
		if err == nil {
			err = use(element)
		}
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// undecodable returns the failure for data from a registry that does not have the expected form.
func undecodable(what string, err error) error {
	var own *failure
	if errors.As(err, &own) {
		return own
	}
	return failf(ReasonInvalidImage, "", "%s is not a JSON object of the expected form", what)
}
