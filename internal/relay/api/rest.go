package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/bawn-dev/bawn"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// policies explains.
type policies struct{ *API }

var _ bawnv1connect.PolicyServiceHandler = (*policies)(nil)

// Explain is the service's.
func (s *policies) Explain(ctx context.Context, m *bawnv1.PolicyServiceExplainRequest) (*bawnv1.PolicyServiceExplainResponse, error) {
	if s.o.Explain == nil {
		return nil, missing("policy to explain")
	}
	if m.GetAction() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("no action to explain"))
	}
	raw, err := s.o.Explain(ctx, m)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New(text(err.Error())))
	}
	out := &bawnv1.PolicyServiceExplainResponse{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, out); err != nil {
		return nil, inside(err)
	}
	show(out)
	return out, nil
}

// show makes every text in a message fit to be shown.
func show(m proto.Message) { showAll(m.ProtoReflect()) }

func showAll(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			for i := range v.List().Len() {
				if f.Kind() == protoreflect.MessageKind {
					showAll(v.List().Get(i).Message())
				} else if f.Kind() == protoreflect.StringKind {
					v.List().Set(i, protoreflect.ValueOfString(text(v.List().Get(i).String())))
				}
			}
		case f.Kind() == protoreflect.MessageKind:
			showAll(v.Message())
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(text(v.String())))
		}
		return true
	})
}

// devices keeps the devices of the web page.
type devices struct{ *API }

var _ bawnv1connect.DeviceServiceHandler = (*devices)(nil)

func (s *devices) page() (Devices, error) {
	if s.o.Devices == nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("this relay serves no web page; start it with \"bawn serve --listen ADDRESS:PORT\""))
	}
	return s.o.Devices, nil
}

// List is the service's.
func (s *devices) List(ctx context.Context, _ *bawnv1.DeviceServiceListRequest) (*bawnv1.DeviceServiceListResponse, error) {
	page, err := s.page()
	if err != nil {
		return nil, err
	}
	list, err := page.Devices(ctx)
	c, _ := callerOf(ctx)
	for _, d := range list {
		d.This = c.Device != "" && d.Id == c.Device
	}
	return &bawnv1.DeviceServiceListResponse{Devices: list}, inside(err)
}

// Revoke is the service's. A device that may only look can take itself out.
func (s *devices) Revoke(ctx context.Context, m *bawnv1.DeviceServiceRevokeRequest) (*bawnv1.DeviceServiceRevokeResponse, error) {
	page, err := s.page()
	if err != nil {
		return nil, err
	}
	c, _ := callerOf(ctx)
	if c.ReadOnly && c.Device != m.GetId() {
		return nil, s.refuse(ctx, c, bawnv1connect.DeviceServiceRevokeProcedure)
	}
	return &bawnv1.DeviceServiceRevokeResponse{}, inside(page.Revoke(ctx, m.GetId(), c.Name))
}

// Pair is the service's.
func (s *devices) Pair(ctx context.Context, m *bawnv1.DeviceServicePairRequest) (*bawnv1.DeviceServicePairResponse, error) {
	page, err := s.page()
	if err != nil {
		return nil, err
	}
	out, err := page.Pair(ctx, m.GetReadOnly())
	return out, inside(err)
}

// PushKey is the service's.
func (s *devices) PushKey(context.Context, *bawnv1.DeviceServicePushKeyRequest) (*bawnv1.DeviceServicePushKeyResponse, error) {
	page, err := s.page()
	if err != nil {
		return nil, err
	}
	return &bawnv1.DeviceServicePushKeyResponse{Key: page.PushKey()}, nil
}

// Subscribe is the service's.
func (s *devices) Subscribe(ctx context.Context, m *bawnv1.DeviceServiceSubscribeRequest) (*bawnv1.DeviceServiceSubscribeResponse, error) {
	page, err := s.page()
	if err != nil {
		return nil, err
	}
	c, _ := callerOf(ctx)
	return &bawnv1.DeviceServiceSubscribeResponse{}, inside(page.Subscribe(ctx, c.Device, m))
}

// Unsubscribe is the service's.
func (s *devices) Unsubscribe(ctx context.Context, _ *bawnv1.DeviceServiceUnsubscribeRequest) (*bawnv1.DeviceServiceUnsubscribeResponse, error) {
	page, err := s.page()
	if err != nil {
		return nil, err
	}
	c, _ := callerOf(ctx)
	return &bawnv1.DeviceServiceUnsubscribeResponse{}, inside(page.Unsubscribe(ctx, c.Device))
}

// systems describes the machine.
type systems struct{ *API }

var _ bawnv1connect.SystemServiceHandler = (*systems)(nil)

// Get is the service's.
func (s *systems) Get(context.Context, *bawnv1.SystemServiceGetRequest) (*bawnv1.SystemServiceGetResponse, error) {
	out := &bawnv1.SystemServiceGetResponse{}
	if s.o.System != nil {
		out = s.o.System()
	}
	out.Now = at(s.o.Now())
	return out, nil
}

// Status is the service's.
func (s *systems) Status(ctx context.Context, _ *bawnv1.SystemServiceStatusRequest) (*bawnv1.SystemServiceStatusResponse, error) {
	if s.o.Status == nil {
		return nil, missing("status")
	}
	out, err := s.o.Status(ctx)
	return out, inside(err)
}

// Stop is the service's. The relay may end before the caller has the answer.
func (s *systems) Stop(ctx context.Context, _ *bawnv1.SystemServiceStopRequest) (*bawnv1.SystemServiceStopResponse, error) {
	if s.o.Stop == nil {
		return nil, missing("end")
	}
	c, _ := callerOf(ctx)
	if err := s.record(ctx, c, "stop", "relay", bawn.Allow, ""); err != nil {
		return nil, err
	}
	s.o.Stop()
	return &bawnv1.SystemServiceStopResponse{}, nil
}
