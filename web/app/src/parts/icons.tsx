const paths = {
  bell: "M6 9a6 6 0 0 1 12 0c0 6 2.5 7 2.5 7h-17S6 15 6 9m4 10a2 2 0 0 0 4 0",
  muted:
    "M4 4l16 16M8.5 5A6 6 0 0 1 18 9c0 2.5.4 4.2.9 5.300M6.2 8A7 7" +
    " 0 0 0 6 9c0 6-2.5 7-2.5 7H16m-6 3a2 2 0 0 0 4 0",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  close: "M6 6l12 12M18 6L6 18",
  people:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7m-7 9c0-4 3-6 7-6s7" +
    " 2 7 6m0-16.500a3.5 3.5 0 0 1 0 7M18 14.500c2.5.6 4 2.5 4 5.5",
  media: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9h.01",
  gear: "M4 7h10m4 0h2M4 17h2m4 0h10M16 4.500v5M8 14.500v5",
  up: "M12 19V5M6 11l6-6 6 6",
  down: "M12 5v14M6 13l6 6 6-6",
  fold: "M9 6l6 6-6 6",
  channel: "M9 4L7 20M17 4l-2 16M4 9h17M3 15h17",
  task: "M4 12l5 5L20 6",
  session: "M12 3l2 6 6 2-6 2-2 6-2-6-6-2 6-2z",
  thread: "M5 5v7a4 4 0 0 0 4 4h10m-4-4l4 4-4 4",
  side: "M4 5h16v14H4zM14 5v14",
  why:
    "M9.5 9a2.5 2.5 0 1 1 3.5 2.300c-.7.3-1 .9-1 1.700v.5M12" +
    " 17h.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18",
  star:
    "M12 4l2.4 5 5.6.7-4.1 3.8 1.1 5.5-5-2.7-5 2.7" +
    " 1.1-5.500L4 9.7 9.6 9z",
} as const;

/** A drawing beside or in place of words; what it means is said by its control's name. */
export function Icon({ name }: { name: keyof typeof paths }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
