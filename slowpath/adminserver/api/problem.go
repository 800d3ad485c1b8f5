package api

import "lace-cni.io/lace/slowpath/source"

// Problem is something that could not be honoured.
type Problem struct {
	Kind    string `json:"kind"`
	Object  string `json:"object"`
	Field   string `json:"field,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Place   Place  `json:"place,omitzero"` // of the object or the mistake, where it is of a folder
}

// Place is where the object of a Problem is written, or what could not be read.
type Place struct {
	File     string `json:"file"`
	Document int    `json:"document,omitempty"` // of the file, from 1; 0: the file as a whole
	Line     int    `json:"line,omitempty"`     // of the file, from 1, where the document begins or the mistake is; 0: as above
	Item     string `json:"item,omitempty"`     // of a list, as items[3]
}

// String is the place in the words of a Problem; empty: none.
func (p Place) String() string { return source.Place(p).String() }
