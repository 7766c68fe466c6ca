// What the types of the golden case accept, and what they reject: an expectation that nothing fails is an error of tsc.
import type { DrawingsClient, DrawShapeInput, FindShapesInput, FindShapesOutput, Layers, ListShapesInput, Node } from "./generated/typescript/drawings_mcp.ts";

export const drawn: DrawShapeInput[] = [
  { shape: { kind: "circle", radius: 1 }, colour: null, "line-width": null, extra: { anything: [] } },
  { shape: { kind: "polygon", points: [[1, 2]] }, labels: { a: ["b", 3] }, scale: 2.5 },
  // @ts-expect-error: a circle has no points
  { shape: { kind: "circle", points: [] } },
  // @ts-expect-error: a point has two coordinates
  { shape: { kind: "polygon", points: [[1, 2, 3]] } },
  // @ts-expect-error: there is no such colour
  { shape: { kind: "circle", radius: 1 }, colour: "pink" },
  // @ts-expect-error: the shape is missing
  {},
];
export const found: FindShapesInput[] = [{ name: "a" }, { id: 1 }];
const others = { limit: 5 };
// Valid by the schema, although no property is of the type, all of whose properties are optional.
export const listed: ListShapesInput[] = [others, {}];
// @ts-expect-error: there is no such argument
export const mistyped: ListShapesInput = { color: "red" };
export const layers: Layers = { front: { text: {} }, back: {} };
export const nested: Node = { name: "a", children: [{ name: "b", children: [] }] };

export function count(page: FindShapesOutput): number {
  return page.total + page.nodes.length + Object.keys(page.layers?.["front"] ?? {}).length;
}

export function measure(input: DrawShapeInput): number {
  return input.shape.kind === "circle" ? input.shape.radius : input.shape.points.length;
}

export async function use(client: DrawingsClient): Promise<number> {
  for await (const shape of client.pages.listShapes({ colour: "red" })) return shape.id;
  return (await client.drawShape({ shape: { kind: "circle", radius: 1 } }, { timeout: 1000 })).id;
}
