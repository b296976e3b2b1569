export type {
  Badge,
  Level,
  ReadMutationResult,
  Reading,
  SyncState,
  Target,
  Unread,
  UnreadSnapshot,
} from "./capability.js";
export type { Loss, Operation, Reason } from "./core/operation.js";
export { RefusedError } from "./core/operation.js";
export type { Message } from "./core/window.js";
export { type Surface, Dwell } from "./dwell.js";
export {
  type Channel,
  type Hub,
  type Timeline,
  UnknownTargetError,
  connectHub,
} from "./hub/hub.js";
export type { HubOptions } from "./hub/options.js";
export type { Channel as TabChannel, Clock, Locks, Storage, Visibility } from "./hub/ports.js";
export { databaseStorage, memoryStorage } from "./hub/storage.js";
export type { TimelineSnapshot } from "./hub/timeline.js";
export { type GetToken, type Namespace, RequestError } from "./hub/transport.js";
