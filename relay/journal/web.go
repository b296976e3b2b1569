package journal

import (
	"context"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// OverWeb is a Relay over HTTP.
func OverWeb(web *nostrx.Web) Relay { return overWeb{web} }

type overWeb struct{ web *nostrx.Web }

func (o overWeb) Publish(ctx context.Context, e nostrx.Event) (nostrx.Receipt, error) {
	return o.web.Publish(ctx, e)
}

func (o overWeb) Coordinates(
	ctx context.Context, author nostrx.PubKey, slots []string,
) ([]nostrx.Event, error) {
	events, _, err := o.web.Query(ctx, AtSlots(author, slots))
	return events, err
}

// AtSlots is the filter for what stands at given slots of an author.
func AtSlots(author nostrx.PubKey, slots []string) nostrx.Filter {
	names := make([]string, len(slots))
	for i, slot := range slots {
		names[i] = slotPrefix + slot
	}
	return nostrx.Filter{
		Kinds: []int{nostrx.KindAppData}, Authors: []nostrx.PubKey{author},
		Tags: map[string][]string{"d": names},
	}
}
